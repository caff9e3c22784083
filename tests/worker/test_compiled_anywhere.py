"""Compilation is seen wherever torch.compile is called, and not where nothing compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.model.codec import from_plain
from perfci.model.measuring import WorkerOutput
from perfci.model.worker import Measurement
from perfci.verdict.reduction import reduce
from tests.worker.driver import Bench

pytestmark = pytest.mark.torch

HEAD = "import itertools\nimport torch\nimport perfci\n\n@perfci.benchmark\ndef case():\n"
SHAPES = """\
    model = torch.compile(torch.nn.ReLU(), backend="eager", dynamic=False)
    inputs = itertools.cycle([torch.ones(size) for size in range(2, 7)])
    return lambda: model(next(inputs))
"""
COUNTS = ("graphs", "graph_breaks", "recompiles")


def test_a_plain_callable_around_torch_compile_is_compiled(torch_bench: Bench) -> None:
    measured = torch_bench.measure(HEAD + SHAPES, cold_cache=True)
    assert {name: measured["values"][name] for name in COUNTS} == {
        "graphs": 5.0,
        "graph_breaks": 0.0,
        "recompiles": 4.0,
    }
    assert all("size mismatch" in event["reason"] for event in measured["graph_events"])
    assert measured["compiled"] is True
    assert measured["missing"]["cold_start"] == "the compile cache was empty"


def test_what_set_up_compiles_is_seen_and_is_no_part_of_the_first_call(torch_bench: Bench) -> None:
    source = HEAD + SHAPES.replace(
        "    return", "    for _ in range(5): model(next(inputs))\n    return"
    )
    measured = torch_bench.measure(source)
    assert measured["values"]["recompiles"] == 4.0
    assert measured["compiled"] is False
    assert "in set-up" in reduced(measured).missing["compile_time"]


def test_what_is_compiled_is_counted_and_kernels_where_the_cache_was_empty(
    torch_bench: Bench, tmp_path: Path
) -> None:
    imported = "\ntorch.compile(torch.sin, backend='eager')(torch.ones(3))\n"
    work = "    return perfci.inference(torch.nn.ReLU(), torch.ones(4), mode='default')\n"
    source = HEAD.replace("import perfci\n", f"import perfci{imported}") + work
    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "TORCHINDUCTOR_VEC_ISA_OK": "1"}
    cold = torch_bench.measure(source, cold_cache=True, env=env)
    assert (cold["values"]["captured_calls"], cold["values"]["generated_kernels"]) == (1.0, 1.0)
    warm = torch_bench.measure(source, env=env)
    assert warm["values"]["captured_calls"] == 1.0
    assert "generated_kernels" not in {**warm["values"], **warm["missing"]}


def test_a_training_loop_that_loads_dynamo_and_compiles_nothing_is_not_compiled(
    bench: Bench,
) -> None:
    source = (
        HEAD
        + """\
    import sys
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight])
    def step():
        weight.sum().backward()
        optimizer.step()
    assert "torch._dynamo.utils" in sys.modules
    return step
"""
    )
    measured = bench.measure(source)
    assert {measured["missing"][name] for name in COUNTS} == {"not compiled"}


LATE = """\
import perfci

@perfci.benchmark
def case():
    def call():
        import torch
        torch.compile(torch.nn.ReLU(), backend="eager")(torch.ones(2))
        return 0
    {}
    return call
"""


@pytest.mark.parametrize("in_setup", ["call()", ""])
def test_what_was_compiled_before_perfci_could_listen_is_missing_and_not_zero(
    bench: Bench, in_setup: str
) -> None:
    measured = bench.measure(LATE.format(in_setup))
    assert "import torch at the top" in measured["missing"]["graph_breaks"]
    assert not set(COUNTS) & set(measured["values"])


def reduced(measured: dict) -> WorkerOutput:
    blocks = [{name: one[name] for name in one if name != "say"} for one in measured["said"]]
    plain = {name: one for name, one in measured.items() if name != "said"}
    raw = from_plain({**plain, "blocks": blocks}, Measurement)
    return reduce(raw, case="case", side="head", round_number=1, cold_cache=True)
