"""Who holds memory, in real processes: a buffer of a call, one of a module, each by its line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from perfci.finding import Difference
from perfci.instruments import Recorded, words
from perfci.instruments.memory import differences
from tests.builders.warm import Warm

_RECORD = """
import gc, json, sys
from perfci.instruments import RecordingScene
from perfci.instruments.memory import record
from perfci.model.worker import WorkOrder
root = sys.argv[1]
sys.path.insert(0, root)
import model
gc.freeze()
model.call()
print(json.dumps(record(RecordingScene(WorkOrder(root, (), root), once=model.call))))
"""
_MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(64, 64)
        self.register_buffer("cache", torch.zeros({rows}, 1024))

    def forward(self, x):
        y = self.inner(x)
        scratch = torch.zeros({scratch}, 1024)
        del scratch
        return self.last(y)

    def last(self, y):
        return torch.relu(y) + 1

model, x = Model(), torch.zeros(1024, 64)

def call():
    with torch.inference_mode():
        return model(x)
"""


def recorded(warm: Warm, root: Path, text: str) -> Sequence[Recorded]:
    root.mkdir()
    (root / "model.py").write_text(text, encoding="utf-8")
    return [json.loads(warm.run(_RECORD, str(root)))]


def place(one: Difference) -> tuple[str, str, int, float]:
    return one.code, one.file, one.line, one.bytes


def test_what_a_call_holds_at_its_peak_is_named_by_its_line(warm: Warm, tmp_path: Path) -> None:
    base = recorded(warm, tmp_path / "a", _MODEL.format(rows=16, scratch=256))
    head = recorded(warm, tmp_path / "b", "# moved\n" + _MODEL.format(rows=1024, scratch=4096))
    first, second = sorted(differences(base, head), key=lambda one: -one.bytes)
    assert place(first) == ("memory-peak", "model.py", 13, float((4096 - 256) * 4096))
    assert words(first) == (
        "`forward` holds 1.25 MiB → 16.2 MiB of the host's memory at a call's peak"
    )
    assert place(second) == ("memory-held", "model.py", 9, float((1024 - 16) * 4096))
    assert words(second) == "`Model.cache` takes 64.0 KiB → 4 MiB of the host's memory"
    assert first.metric == "peak_host_memory"
    assert not list(differences(head, head))
