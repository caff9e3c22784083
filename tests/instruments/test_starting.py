"""Time until the first call has ended, by function: on a made-up clock, of frames made by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from perfci.instruments import RecordingScene, starting, words
from perfci.instruments.starting import differences, record
from perfci.model.worker import WorkOrder

LIBRARY = """\
def outer(look):
    inner(look)

def inner(look):
    look()

def importing(look):
    exec(compile("look()", "<frozen importlib._bootstrap>", "exec"), {"look": look})
"""


def library(root: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(LIBRARY, str(root / "lib.py"), "exec"), names)
    return names


def caller(root: Path, changed: dict[str, tuple[int, ...]]) -> tuple[str, int, str]:
    scene = RecordingScene(WorkOrder(str(root), (), changed=changed))
    found: list[tuple[str, int, str]] = []
    library(root)["outer"](lambda: found.append(scene.caller(sys._getframe())))
    return found[0]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ((), ("lib.py", 5, "inner")),
        ((5,), ("lib.py", 5, "inner")),
        ((2,), ("lib.py", 2, "outer")),
        ((1,), ("lib.py", 2, "outer")),
        ((2, 5), ("lib.py", 5, "inner")),
        ((8,), ("lib.py", 5, "inner")),
    ],
)
def test_the_innermost_function_that_a_change_touches_is_named(
    tmp_path: Path, lines: tuple[int, ...], named: tuple[str, int, str]
) -> None:
    assert caller(tmp_path, {"lib.py": lines}) == named
    assert caller(tmp_path, {"other.py": lines}) == ("lib.py", 5, "inner")


def test_samples_are_time_of_their_function_but_not_within_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Callable[[FrameType], None]] = []
    now = [0.0]

    @contextmanager
    def sampling(look: Callable[[FrameType], None], _every_s: float) -> Iterator[None]:
        looks.append(look)
        yield

    def sample() -> None:
        now[0] += 0.5
        looks[0](sys._getframe())

    monkeypatch.setattr(starting, "sampling", sampling)
    monkeypatch.setattr(starting, "perf_counter", lambda: now[0])
    names = library(tmp_path)
    with record(RecordingScene(WorkOrder(str(tmp_path), ()))) as recorded:
        names["outer"](sample)
        names["importing"](sample)
        names["outer"](sample)
        sample()  # of no own code
    assert recorded == {"lines": [["lib.py", 5, "inner", 1.0]]}


def recorded(**functions: float) -> list[dict[str, Any]]:
    lines = [["lib.py", at, name, took] for at, (name, took) in enumerate(functions.items(), 1)]
    return [{"lines": lines}]


def test_functions_that_take_longer_are_named_with_their_line() -> None:
    (slower,) = differences(recorded(build=0.014, other=0.1), recorded(build=0.324, other=0.11))
    assert words(slower) == "`build` takes 14.0 ms → 324 ms until the first call has ended"
    assert (slower.file, slower.line, slower.metric) == ("lib.py", 1, "cold_start")
    (faster,) = differences(recorded(build=0.324), recorded(build=0.014))
    assert faster.seconds < 0.0
    (new,) = differences(recorded(), recorded(build=0.3))
    assert words(new).startswith("`build` takes 0")


def test_time_that_moved_into_another_function_or_is_small_is_no_difference() -> None:
    assert not [*differences(recorded(build=0.3), recorded(built=0.31))]
    assert not [*differences(recorded(build=0.001), recorded(build=0.015))]
    assert not [*differences(recorded(build=1.0), recorded(build=1.1))]
