"""Host time by line, sampled in real processes: a loop that grew is named, an operator is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from perfci.instruments import Recorded, RecordingScene, words
from perfci.instruments.python import _recorded, differences
from perfci.model.worker import WorkOrder
from tests.builders.warm import Warm

_RECORD = """
import json, sys
from perfci.clock import perf_counter
from perfci.instruments import RecordingScene
from perfci.instruments.python import record
from perfci.model.worker import WorkOrder
root = sys.argv[1]
sys.path.insert(0, root)
import model
began = perf_counter()
model.call()
call_s = perf_counter() - began
scene = RecordingScene(WorkOrder(root, (), root), once=model.call, call_s=call_s)
for _ in range(3):
    print(json.dumps(record(scene)))
"""
_LOOP = """
def loop(count):
    total = 0
    total += sum([number * number for number in range(count)])
    return total

def other():
    return sum(range(2000))

def call():
    {before}
    other()
    return loop({count})
"""
_SLOW_CLOCK = """
import time
now = time.perf_counter
time.perf_counter = lambda: now() / 20
"""
_OPERATORS = """
import torch
x = torch.zeros(300, 300)

def call():
    for _ in range({count}):
        y = x @ x
    return y
"""


def recorded(warm: Warm, root: Path, text: str) -> Sequence[Recorded]:
    root.mkdir()
    (root / "model.py").write_text(text, encoding="utf-8")
    return [json.loads(line) for line in warm.run(_RECORD, str(root)).splitlines()]


@pytest.mark.slow  # it compares times that it measured
def test_a_slower_loop_is_named_by_its_line_wherever_that_moved(warm: Warm, tmp_path: Path) -> None:
    base = recorded(warm, tmp_path / "a", _LOOP.format(count=2_000, before="pass"))
    head = recorded(warm, tmp_path / "b", "# longer\n" + _LOOP.format(count=20_000, before="pass"))
    (one,) = differences(base, head)
    assert (one.file, one.arguments["function"], one.metric) == ("model.py", "loop", "latency")
    assert one.line == 5
    assert words(one).startswith("`loop` takes ")
    (back,) = differences(head, base)
    assert back.seconds < 0 < one.seconds
    assert not list(differences(head, head))


@pytest.mark.slow  # it compares times that it measured
def test_a_clock_that_the_project_replaces_times_nothing(warm: Warm, tmp_path: Path) -> None:
    base = recorded(warm, tmp_path / "a", _LOOP.format(count=2_000, before="pass"))
    slower = _SLOW_CLOCK + _LOOP.format(count=20_000, before="pass")
    (loop,) = differences(base, recorded(warm, tmp_path / "b", slower))
    assert (loop.arguments["function"], loop.seconds > 0) == ("loop", True)


@pytest.mark.slow  # it compares times that it measured
def test_an_operators_time_is_not_pythons(warm: Warm, tmp_path: Path) -> None:
    base, head = (
        # the samples are real; how long a call took on this machine is not
        [
            {**run, "call_s": call_s}
            for run in recorded(warm, tmp_path / name, _OPERATORS.format(count=count))
        ]
        for name, count, call_s in (("a", 2, 1.0), ("b", 8, 4.0))
    )
    # a few samples may fall between two operators
    assert sum(one.seconds for one in differences(base, head)) < 0.2 * (4.0 - 1.0)
    operators = {operator for run in head for _, operator, _ in run["stacks"]}
    assert "aten::matmul" in operators


def test_code_that_cannot_be_hashed_has_its_frames(tmp_path: Path) -> None:
    """As that of a tracer, which may put a dict or a list among the constants."""

    def work() -> int:
        return 1

    codes = [work.__code__.replace(co_consts=(None, odd)) for odd in ({}, [], 1)]
    scene = RecordingScene(WorkOrder(str(tmp_path), (), str(tmp_path)))
    seen = [(number, ((code, 1),)) for number, code in enumerate((*codes, codes[0]))]
    run = _recorded(scene, seen, ())
    assert run["samples"] == 4
    assert [row[3] for row in run["frames"]] == [
        "test_code_that_cannot_be_hashed_has_its_frames.<locals>.work"
    ]


def run_of(call_s: float, **shares: int) -> Recorded:
    """A run of 100 samples, so many in each function."""
    frames = [["m.py", line, name, name, True] for line, name in enumerate(shares, 1)]
    stacks = [[[number], "", count] for number, count in enumerate(shares.values())]
    return {"call_s": call_s, "samples": 100, "frames": frames, "stacks": stacks}


def test_the_time_below_a_function_that_a_change_touches_is_its_own() -> None:
    frames = [["m.py", 3, "touched", "outer", 2], ["m.py", 9, "helper", "helper", 1]]
    base, head = (
        {"call_s": call_s, "samples": 100, "frames": frames, "stacks": [[[0, 1], "", 100]]}
        for call_s in (1e-3, 3e-3)
    )
    (only,) = differences([base] * 3, [head] * 3)
    assert (only.arguments["function"], only.line) == ("outer", 3)


@pytest.mark.parametrize("noisy", [0, 1, 2])
def test_runs_that_overlap_are_no_evidence(noisy: int) -> None:
    base = [run_of(1e-3, work=50, other=50)] * 3
    slow, same = run_of(2e-3, work=80, other=20), run_of(1e-3, work=50, other=50)
    head = [same if number == noisy else slow for number in range(3)]
    assert not list(differences(base, head))
    assert [one.arguments["function"] for one in differences(base, [slow] * 3)] == ["work"]
