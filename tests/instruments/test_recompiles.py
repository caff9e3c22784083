"""Recompilations after the first call, of plain callables in real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perfci.instruments import words
from perfci.instruments.recompiles import differences
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
