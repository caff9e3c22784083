"""The fixture ``benchmark``. It takes the calls that pytest-benchmark's and codspeed's take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from perfci.collector import Work

MARK = "perfci"
MEASURING = ("benchmark", "codspeed")
"""The plugins that have a fixture ``benchmark`` of their own."""


class Call:
    """The fixture. Options for timing have no effect. As in a dry run, there are no ``stats``."""

    stats = None
    disabled = True
    enabled = False

    def __init__(self, measure: Callable[[Any], None]) -> None:
        self._measure: Callable[[Any], None] | None = measure
        self.name = ""
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Measure ``function(*args, **kwargs)``, then call it and return its result."""
        call = partial(function, *args, **kwargs) if args or kwargs else function
        self._hand_over(call)
        return call()

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        **_timing: int,
    ) -> Any:
        """Measure the target. ``setup`` and ``teardown`` run around each call, untimed.

        ``rounds``, ``iterations`` and ``warmup_rounds`` are ignored: perfci decides on them.
        """
        if not (setup or teardown):
            return self(target, *args, **(kwargs or {}))
        calls = _PreparedCalls(target, args, kwargs or {}, setup, teardown)
        self._hand_over(Work(calls.call, prepare=calls.prepare))
        calls.prepare()
        output = calls.call()
        calls.tear_down()
        return output

    def _hand_over(self, work: Any) -> None:
        if self._measure is None:
            raise RuntimeError("a test measures once: make another test of what else it calls")
        measure, self._measure = self._measure, None
        measure(work)


class _PreparedCalls:
    """Calls of ``target``. If ``setup`` returns arguments, the next call is made with them."""

    def __init__(
        self,
        target: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        setup: Callable[[], Any] | None,
        teardown: Callable[..., Any] | None,
    ) -> None:
        self._target, self._args, self._kwargs = target, tuple(args), kwargs
        self._setup, self._teardown = setup, teardown
        self._called = False

    def call(self) -> Any:
        self._called = True
        return self._target(*self._args, **self._kwargs)

    def prepare(self) -> None:
        """Tear down after the last call, and set up the next call."""
        self.tear_down()
        if self._setup and (arguments := self._setup()):
            self._args, self._kwargs = arguments

    def tear_down(self) -> None:
        if self._called and self._teardown:
            self._teardown(*self._args, **self._kwargs)
        self._called = False


def know_marks(config: pytest.Config) -> None:
    """Register the marks that measure."""
    config.addinivalue_line("markers", f"{MARK}: perfci measures the whole test")
    config.addinivalue_line(
        "markers",
        "benchmark: pytest-benchmark's options; without its fixture, the whole test is measured",
    )
