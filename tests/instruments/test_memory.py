"""Who holds memory, in real processes: a buffer of a call, one of a module, each by its line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from perfci.instruments import Recorded, words
from perfci.instruments.memory import device_row, differences, held_at_peak
from perfci.model.finding import Difference
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
device = None
if getattr(model, "device", "cpu") != "cpu":
    from perfci.worker.devices.cuda import Cuda
    device = Cuda(model.device)
print(json.dumps(record(RecordingScene(WorkOrder(root, (), root), once=model.call, device=device))))
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


def recorded(warm: Warm | FreshProcess, root: Path, text: str) -> Sequence[Recorded]:
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


def peak(device: str, **held: int) -> Recorded:
    rows = [["m.py", name, line, name, size] for line, (name, size) in enumerate(held.items(), 1)]
    return {"held": [], "peaks": [[device, sum(held.values()), rows]]}


# A CUDA device's own history. Its structure is that of torch's ``cuda.memory._snapshot``.

MIB = 1 << 20
LINES = {10: "y = self.inner(x)", 11: "scores = q @ k", 21: "q = q.float()", 22: "q = q.float()"}


def event(action: str, address: int, mib: int, *frames: tuple[str, str, int]) -> Mapping[str, Any]:
    return {
        "action": action,
        "addr": 0x7F0000000000 + address,
        "size": mib * MIB,
        "stream": 0,
        "time_us": 1_700_000_000_000_000,
        "frames": [{"filename": file, "name": name, "line": line} for file, name, line in frames],
    }


LINEAR = ("/v/site-packages/torch/nn/modules/linear.py", "forward", 134)
FORWARD = ("/tree/m.py", "forward", 10)


def attend(line: int) -> tuple[tuple[str, str, int], ...]:
    return LINEAR, ("/tree/m.py", "attend", line), ("/tree/m.py", "forward", 11)


def trace(scores: int, cast_line: int, cast: int) -> Sequence[Mapping[str, Any]]:
    """The last call's output is freed first; the peak comes before what is largest on its own."""
    return [
        event("free_requested", 9, 512),
        event("free_completed", 9, 512),
        event("segment_alloc", 0, 1024),
        event("alloc", 0, 600, LINEAR, FORWARD),
        event("alloc", 1, scores, *attend(11)),
        event("alloc", 2, cast, *attend(cast_line)),
        event("alloc", 3, 8),  # of autograd's thread, which has no Python stack
        event("free_requested", 2, cast),
        event("free_completed", 2, cast),
        event("free_requested", 1, scores),
        event("free_requested", 0, 600),
        event("alloc", 2, 20, LINEAR, FORWARD),
        event("free_completed", 0, 600),
        event("free_completed", 1, scores),
        event("snapshot", 0, 0),
    ]


def in_tree(file: str) -> str:
    return file.removeprefix("/tree/") if file.startswith("/tree/") else ""


def of_trace(events: Sequence[Mapping[str, Any]]) -> Sequence[Recorded]:
    row = device_row(held_at_peak(events, in_tree), lambda _, line: LINES.get(line, ""))
    return [json.loads(json.dumps({"held": [], "peaks": [row]}))]


def test_an_allocators_history_says_which_stacks_hold_its_peak() -> None:
    held = held_at_peak(trace(100, 21, 50), in_tree)
    outer = ("m.py", "forward", 11)
    assert held == {
        (("m.py", "forward", 10),): 600 * MIB,
        (("m.py", "attend", 11), outer): 100 * MIB,
        (("m.py", "attend", 21), outer): 50 * MIB,
        (): 8 * MIB,
    }


def test_the_stack_that_holds_more_of_a_device_is_named_with_its_line() -> None:
    base, head = of_trace(trace(100, 21, 50)), of_trace(trace(100, 22, 200))
    (one,) = differences(base, head)
    assert place(one) == ("memory-peak", "m.py", 22, 150.0 * MIB)
    assert words(one) == (
        "`attend ← forward` holds 150 MiB → 300 MiB of the device's memory at a call's peak"
    )
    assert one.metric == "peak_device_memory"
    assert not list(differences(head, head))


class FreshProcess:
    """Runs a program as ``Warm`` does, but not in a fork: its parent may have initialised CUDA."""

    def run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout


@pytest.mark.gpu
@pytest.mark.torch
def test_a_real_devices_peak_is_told_by_its_stack(tmp_path: Path) -> None:
    fresh = FreshProcess()
    model = _MODEL.replace("torch.zeros(", 'torch.zeros(device="cuda", size=(').replace(
        ", 1024)", ", 1024))"
    )
    model = model.replace("size=(1024, 64)", "size=(1024, 64))").replace(
        "model, x = Model()", 'device, model, x = "cuda:0", Model().cuda()'
    )
    base = recorded(fresh, tmp_path / "a", model.format(rows=16, scratch=256))
    head = recorded(fresh, tmp_path / "b", "# moved\n" + model.format(rows=16, scratch=4096))
    (one,) = differences(base, head)
    assert place(one)[:3] == ("memory-peak", "model.py", 13)
    assert one.bytes == pytest.approx((4096 - 256) * 4096, rel=0.1)
    assert "`forward ← call` holds " in words(one)
