"""pynvml without a driver: its real names, signatures and exceptions, and answers as given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pynvml

FIRST, SECOND = "11111111-2222-3333-4444-555555555555", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
"""The UUIDs of two cards, as torch writes them."""


def error(code: str) -> pynvml.NVMLError:
    """Return NVML's error of that code, of its own class as the binding raises it."""
    return pynvml.NVMLError(getattr(pynvml, f"NVML_ERROR_{code}"))


def processes(*pids: int) -> list[SimpleNamespace]:
    return [SimpleNamespace(pid=pid, usedGpuMemory=1 << 30) for pid in pids]


def card(**answers: Any) -> dict[str, Any]:
    """Return what a sound, idle card answers."""
    return {
        "nvmlDeviceGetCurrentClocksEventReasons": 0x1,  # idle
        "nvmlDeviceGetComputeRunningProcesses": [],
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetTemperature": 34,
        "nvmlDeviceGetClockInfo": 1980,
        **answers,
    }


class FakeNvml:
    """The module, with cards by NVML's UUID. ``asked`` is each call, with its arguments."""

    def __init__(self, cards: Mapping[str, Mapping[str, Any]], init: Any = None) -> None:
        self.cards = cards
        self.init = init
        self.asked: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)  # no name that the binding hasn't got
        return self._function(name, real) if inspect.isfunction(real) else real

    def _function(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            inspect.signature(real).bind(*arguments)
            self.asked.append((name, arguments[0] if arguments else None))
            if name == "nvmlInit":
                return _answer(self.init)
            if name == "nvmlDeviceGetCount":
                return len(self.cards)
            if name == "nvmlDeviceGetHandleByIndex":
                return list(self.cards)[arguments[0]]
            if name == "nvmlDeviceGetUUID":
                return arguments[0]
            if name == "nvmlDeviceGetHandleByUUID":
                return arguments[0] if arguments[0] in self.cards else _answer(error("NOT_FOUND"))
            return _answer(self.cards[arguments[0]][name])

        return call


def _answer(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer() if callable(answer) else answer
