"""Hints, of calls in real processes: what is often a mistake is said, and what isn't is not."""

from __future__ import annotations

import json

import pytest

from perfci.instruments import Recorded, words
from perfci.instruments.hints import hints
from tests.builders.warm import Warm

_RECORD = """
import json, sys
from perfci.instruments import RecordingScene
from perfci.instruments.hints import record
from perfci.model.worker import WorkOrder
root = sys.argv[1]
sys.path.insert(0, root)
import model
for name in sys.argv[2:]:
    call = getattr(model, name)
    recorded = record(RecordingScene(WorkOrder(root, (), root), call=call, once=call))
    print(json.dumps({**recorded, "times": []}))
"""
_MODEL = """\
import torch
from torch.utils.data import DataLoader

layer, x = torch.nn.Linear(8, 8), torch.zeros(4, 8)
big = torch.zeros(512, 512)
loader = DataLoader(torch.zeros(6, 8), batch_size=2)

def careless():
    return {"out": [layer(x)]}

def careful():
    with torch.inference_mode():
        return layer(x)

def training():
    loss = layer(x).sum()
    loss.backward()
    return loss

def reading():
    with torch.no_grad():
        return sum(value.item() for value in x[0].repeat(2))

def elementwise():
    with torch.no_grad():
        y = big
        for _ in range(4):
            y = (y.tanh() + 1).sigmoid()
        return y

def multiplying():
    with torch.no_grad():
        y = big
        for _ in range(4):
            y = (y @ big).relu() + 1
        return y

def loading():
    return [len(batch) for batch in loader]
"""
_NAMES = ("careless", "careful", "training", "reading", "loading", "elementwise", "multiplying")


@pytest.fixture(scope="module")
def recorded(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    root = tmp_path_factory.mktemp("model")
    (root / "model.py").write_text(_MODEL, encoding="utf-8")
    lines = map(json.loads, warm.run(_RECORD, str(root), *_NAMES).splitlines())
    return dict(zip(_NAMES, lines, strict=True))


@pytest.mark.parametrize(
    ("name", "code", "line"),
    [
        ("careless", "hint-gradients", 0),
        ("reading", "hint-item", 22),
        ("loading", "hint-loader", 0),
        ("elementwise", "hint-eager", 0),
    ],
)
def test_a_mistake_is_named(recorded: dict[str, Recorded], name: str, code: str, line: int) -> None:
    (one,) = hints([recorded[name]])
    assert (one.code, one.line) == (code, line)
    assert words(one)


@pytest.mark.parametrize("name", ["careful", "training", "multiplying"])
def test_what_is_no_mistake_gives_no_hint(recorded: dict[str, Recorded], name: str) -> None:
    assert not list(hints([recorded[name]]))


def test_elementwise_operators_are_counted_and_weighed(recorded: dict[str, Recorded]) -> None:
    (one,) = hints([recorded["elementwise"]])
    assert one.arguments["count"] == 12
    assert float(str(one.arguments["share"])) > 0.9
    assert words(one).endswith(" of the operators' time is in 12 elementwise ones, which it fuses")
    assert recorded["multiplying"]["elementwise"] == 8


CALM = {"keeps_graph": False, "backward": False, "watched": True, "device": True, "loads": 0,
        "items": [], "copies": [], "elementwise": 0, "share": 0.0}  # fmt: skip


def test_a_copy_between_host_and_device_is_said_with_its_line() -> None:
    (one,) = hints([{**CALM, "times": [], "copies": [["model.py", 7, 1]]}])
    assert (one.file, one.line) == ("model.py", 7)
    assert words(one).endswith("may wait for the device: 1")
