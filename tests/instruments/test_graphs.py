"""Graphs counted in real processes, which differ in a line; and counts made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perfci.instruments import words
from perfci.instruments.graphs import differences
from tests.builders.warm import Warm

_RECORD = """
import json, sys
from perfci.instruments import RecordingScene
from perfci.instruments.graphs import record
from perfci.model.worker import WorkOrder
root = sys.argv[1]
sys.path.insert(0, root)
import torch, model
with record(RecordingScene(WorkOrder(root, (), root))) as recorded:
    model.forward(torch.ones(8))
print(json.dumps(recorded))
"""
_MODEL = """\
import torch

@torch.compile(backend="eager")
def forward(x):
    y = torch.relu(x)
    {}
    return y + 1
"""


def recorded(warm: Warm, root: Path, line: str) -> list[Any]:
    root.mkdir()
    (root / "model.py").write_text(_MODEL.format(line), encoding="utf-8")
    return [json.loads(warm.run(_RECORD, str(root)))]


def test_nodes_and_breaks_are_named_by_their_line(warm: Warm, tmp_path: Path) -> None:
    base = recorded(warm, tmp_path / "base", "y = y.tanh()")
    (node,) = differences(base, recorded(warm, tmp_path / "head", "y = y.tanh().tanh()"))
    assert (node.file, node.line) == ("model.py", 6)
    assert words(node) == "the graphs call `tanh` 0 → 2 times"
    broken = recorded(warm, tmp_path / "broken", "y = y.tanh(); print(end='')")
    found = [one for one in differences(base, broken) if one.code == "graph-new"]
    assert [(one.file, one.line) for one in found] == [("model.py", 6)]
    assert words(found[0]).startswith("new graph break: ")
    assert not [*differences(base, recorded(warm, tmp_path / "same", "y = y.tanh()"))]


def side(kernels: int | None, *nodes: tuple[str, int]) -> list[Any]:
    rows = [[name, "model.py", line, f"forward: {name}()", 1] for name, line in nodes]
    return [{"events": [], "nodes": rows, "kernels": kernels}]


def test_kernels_have_the_only_line_that_differs() -> None:
    *_, kernels = differences(side(1, ("relu", 3)), side(3, ("relu", 3), ("squash", 4)))
    assert words(kernels) == "Inductor generates 1 → 3 kernels: its fusions changed"
    assert (kernels.file, kernels.line) == ("model.py", 4)
