"""Recompilations after the first call, of plain callables in real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfci.instruments import words
from perfci.instruments.recompiles import differences
from perfci.metrics.graphs.compile_listener import recompile_place
from tests.builders.warm import Warm

_RECORD = """
import json, sys
from perfci.instruments import RecordingScene
from perfci.instruments.recompiles import record
from perfci.model.worker import WorkOrder
root = sys.argv[1]
sys.path.insert(0, root)
import model
model.call()  # the first one
scene = RecordingScene(WorkOrder(root, (), root), call=model.call, once=model.call)
print(json.dumps(record(scene)))
"""
_MODEL = """\
import torch

class Net(torch.nn.Module):
    turn = 0

    def forward(self, x):
        {}
        return x * self.turn

net = torch.compile(Net(), backend="eager")

def call():  # nobody calls this compiled
    return net(torch.ones(8))
"""


def recorded(warm: Warm, root: Path, line: str) -> list[Any]:
    root.mkdir()
    (root / "model.py").write_text(_MODEL.format(line), encoding="utf-8")
    return [json.loads(warm.run(_RECORD, str(root)))]


def test_a_guard_that_fails_is_named_with_its_line(warm: Warm, tmp_path: Path) -> None:
    base = recorded(warm, tmp_path / "base", "x = x + 1")
    head = recorded(warm, tmp_path / "head", "self.turn += 1")
    found = {str(one.arguments["guard"]): one for one in differences(base, head)}
    guard = found["self.turn == 1"]
    assert (guard.file, guard.line, guard.metric) == ("model.py", 7, "recompiles")
    assert words(guard) == (
        "the 16 calls after the first compile again 0 → 7 times, as this guard fails: "
        "self.turn == 1"
    )
    limit = found["recompile_limit reached"]
    assert words(limit).startswith("torch.compile gives up compiling again 0 → 1 times")
    assert limit.metric == "latency"
    assert not [*differences(head, head)]


def test_who_compiles_nothing_has_nothing_untold(warm: Warm, tmp_path: Path) -> None:
    eager = _MODEL.replace('torch.compile(Net(), backend="eager")', "Net()")
    (tmp_path / "model.py").write_text(eager.format("pass"), encoding="utf-8")
    assert json.loads(warm.run(_RECORD, str(tmp_path))) == {"calls": [[]] * 16}


def side(*calls: list[list[Any]]) -> list[Any]:
    return [{"calls": [*calls]}]


def event(reason: str, line: int, count: int = 1) -> list[Any]:
    return ["recompile", reason, "model.py", line, count]


def test_sides_are_compared_over_as_many_calls() -> None:
    often = side([event("n == 1", 3)], [event("n == 2", 3)], [event("n == 3", 3)])
    assert not [*differences(side([event("n == 1", 9)]), often)]
    (one,) = differences(side([], [], []), often)
    assert (one.arguments["before"], one.arguments["after"], one.line) == (0, 3, 3)
    (gone,) = differences(often, side([], [], []))
    assert (gone.arguments["before"], gone.arguments["after"], gone.line) == (3, 0, 0)


@pytest.mark.parametrize(
    ("guard", "line"),
    [
        ("self.n == 0      # self.n += 1  # e/root/model.py:18 in forward (HINT)", 18),
        ("2 <= x.size()[0]  # y = x  # root/model.py:11 in f (user) and z  # model.py:12 in f", 11),
        ("tensor 'x' size mismatch at index 0. expected 2, actual 3", 9),
        ("n == 0  # n = f()  # other.py:4 in f", 9),
    ],
)
def test_a_recompile_is_at_the_line_of_its_guard(guard: str, line: int) -> None:
    message = (
        "Recompiling function f in /the/root/model.py:9\n"
        f"    triggered by the following guard failure(s):\n    - 0/0: {guard}"
    )
    assert recompile_place(message).line == line
