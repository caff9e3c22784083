"""Phases of compilations in real processes, and phases made by hand."""

from __future__ import annotations

import json
from typing import Any

from perfci.instruments import words
from perfci.instruments.compiling import differences
from tests.builders.warm import Warm

_RECORD = """
import json, sys, time
from perfci.instruments import RecordingScene
from perfci.instruments.compiling import record
from perfci.model.worker import WorkOrder
import torch
layers, backend_s = int(sys.argv[1]), float(sys.argv[2])

def backend(graph, inputs):
    time.sleep(backend_s)
    return graph.forward

@torch.compile(backend=backend)
def compiled(x):
    for _ in range(layers):
        x = torch.relu(x) + 1
    return x

def work():  # a plain callable, which nobody calls compiled
    return compiled(torch.ones(8)) if layers else torch.ones(8)

with record(RecordingScene(WorkOrder("/", (), "/"))) as recorded:
    work()
print(json.dumps(recorded))
"""


def recorded(warm: Warm, layers: int, backend_s: float) -> list[Any]:
    return [json.loads(warm.run(_RECORD, str(layers), str(backend_s)))]


def test_each_phase_of_a_real_compilation_has_its_own_time(warm: Warm) -> None:
    (base,), (head,) = recorded(warm, 2, 0.0), recorded(warm, 100, 1.0)
    assert head["phases"].keys() == base["phases"].keys()
    # a busy machine may make tracing two layers take as long as a hundred
    base["phases"] = dict.fromkeys(base["phases"], 0.01)
    head["phases"]["Dynamo"] = 2.0
    found = {one.arguments["phase"]: one for one in differences([base], [head])}
    backend, dynamo = found["AOTAutograd (or another backend)"], found["Dynamo"]
    assert float(backend.arguments["after"]) >= 1.0
    assert (backend.metric, backend.exact) == ("compile_time", False)
    assert words(backend).endswith(" of the first call, for 1 graph as before")
    assert words(dynamo).startswith("Dynamo takes ")
    assert words(dynamo).endswith(" of the first call, for 4 → 200 calls")
    assert dynamo.exact


def test_a_case_that_compiles_nothing_says_nothing(warm: Warm) -> None:
    (eager,) = recorded(warm, 0, 0.0)
    assert eager == {"phases": None}
    assert not [*differences([eager], [side(1.0)])]


def side(inductor_s: float, **made: int) -> Any:
    return {"phases": {"Dynamo": 1.0, "Inductor": inductor_s}, "made": made}
