"""Several shapes in one benchmark: which compile anew, and what each takes."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import perfci  # noqa: E402
from perfci.errors import BenchmarkError  # noqa: E402
from tests.builders.warm import Warm  # noqa: E402
from tests.worker.driver import Bench  # noqa: E402

SOURCE = """\
import torch
import perfci

@perfci.benchmark
def case():
    return perfci.inference(
        torch.nn.ReLU(), torch.ones(1, 3), shapes=[(2, 3), (4, 3), (8, 3)], mode="{mode}",
        device="cpu", compile_options={options},
    )
"""
COMPILES = ("compiles_2x3", "compiles_4x3", "compiles_8x3")


@pytest.fixture
def bench(tmp_path: Any, warm: Warm) -> Bench:
    return Bench(tmp_path, warm)


@pytest.mark.parametrize(
    ("options", "compiled"),
    [
        ("None", (1.0, 1.0, 0.0)),
        ("{'dynamic': False}", (1.0, 1.0, 1.0)),
        ("{'dynamic': True}", (1.0, 0.0, 0.0)),
    ],
)
def test_each_shape_that_compiles_anew_is_counted(
    bench: Bench, options: str, compiled: tuple[float, ...]
) -> None:
    measured = bench.measure(SOURCE.format(mode="backend:eager", options=options))
    values = measured["values"]
    assert tuple(values[name] for name in COMPILES) == compiled
    assert all(values[name.replace("compiles", "latency")] > 0.0 for name in COMPILES)
    assert measured["warnings"] == []


def test_eager_shapes_have_latencies_and_nothing_that_compiles(bench: Bench) -> None:
    measured = bench.measure(SOURCE.format(mode="eager", options="None"))
    own = [name for name in measured["values"] if "x3" in name or "shape" in name]
    assert own == ["latency_2x3", "latency_4x3", "latency_8x3"]
    assert measured["remarks"] == {}


def test_a_call_is_one_of_each_and_so_is_its_reference() -> None:
    pairs = [(torch.ones(2), torch.ones(2)), (torch.ones(3), torch.ones(3))]
    work = perfci.inference(torch.add, shapes=pairs, device="cpu")
    assert [one.metric.name for one in work.metrics] == ["latency_2_2", "latency_3_3"]
    assert [one.tolist() for one in work.call()] == [[2.0] * 2, [2.0] * 3]
    candidate, reference = work.accuracy()
    assert [one.dtype for one in reference] == [torch.float64] * 2
    assert [one.shape for one in candidate] == [one.shape for one in reference]


@pytest.mark.parametrize(
    ("shapes", "slug"),
    [
        ([], "bad-shapes"),
        ([(2, 3), "8x3"], "bad-shapes"),
        ([(2, 3), ()], "bad-shapes"),
        ([(2, 3), torch.ones(2, 3)], "bad-shapes"),
    ],
)
def test_what_is_no_list_of_shapes_is_refused(shapes: Any, slug: str) -> None:
    with pytest.raises(BenchmarkError) as caught:
        perfci.inference(torch.relu, torch.ones(1, 3), shapes=shapes, device="cpu")
    assert caught.value.slug == slug
    assert caught.value.message.startswith(f"{__file__}:")
