"""Floating-point operations: counted where torch can, in eager as compiled; silent elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfci.metrics.energy_and_flops import flop_counter
from perfci.model.finding import Finding
from perfci.model.words import words
from tests.builders.warm import Warm
from tests.worker.driver import Bench

pytestmark = pytest.mark.torch

HEAD = "import torch\nimport perfci\n\n@perfci.benchmark\ndef case():\n"
LINEAR = "torch.nn.Linear(256, 512), torch.randn(64, 256), device='cpu'"
FLOPS = 2.0 * 64 * 256 * 512


@pytest.fixture
def bench(tmp_path: Path, warm: Warm) -> Bench:
    return Bench(tmp_path, warm)


@pytest.mark.parametrize(
    ("work", "flops"),
    [
        (f"perfci.inference({LINEAR})", FLOPS),
        (f"perfci.inference({LINEAR}, mode='backend:eager')", FLOPS),
        ("(lambda a=torch.randn(64, 256), b=torch.randn(256, 512): a @ b)", FLOPS),
    ],
)
def test_a_call_is_counted_with_its_share_of_the_peak(
    bench: Bench, work: str, flops: float
) -> None:
    measured = bench.measure(f"{HEAD}    return {work}\n")
    assert measured["values"]["flops"] == flops
    remark = measured["remarks"]["flops"]
    assert remark["code"] == "flop-share"
    assert remark["arguments"]["dtype"] == "float32"
    assert remark["arguments"]["share"] > 0.0
    assert "GFLOP/s of a float32 product" in words(Finding(**remark)).replace("TFLOP", "GFLOP")


@pytest.mark.parametrize("work", ["lambda: sum(range(99))", "lambda: torch.ones(9).sin()"])
def test_work_without_what_torch_counts_has_none_and_says_nothing(bench: Bench, work: str) -> None:
    measured = bench.measure(f"{HEAD}    return {work}\n")
    assert "flops" not in {**measured["values"], **measured["missing"], **measured["remarks"]}


def test_an_operator_that_the_counter_fails_on_costs_the_count_alone(bench: Bench) -> None:
    source = (
        f"{HEAD}    from torch.utils._python_dispatch import _get_current_dispatch_mode as mode\n"
        "    def call():\n"
        "        if mode() is not None: raise ValueError('not under a mode')\n"
        "        return torch.ones(9)\n"
        "    return call\n"
    )
    measured = bench.measure(source)
    assert "not under a mode" in measured["missing"]["flops"]
    assert measured["values"]["cold_start"] > 0.0


BESIDE_TORCH = """
import sys
import torch
from perfci.metrics.energy_and_flops import _counted

layer = torch.nn.TransformerEncoderLayer(64, 4, batch_first=True)
convolution = torch.nn.Conv2d(3, 8, 3)
works = {
    "a training step": lambda: layer(torch.ones(2, 5, 64)).sum().backward(),
    "without gradients": lambda: torch.no_grad()(layer)(torch.ones(2, 5, 64)),
    "a convolution": lambda: convolution(torch.ones(1, 3, 16, 16)),
    "einsum": lambda: torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5)),
}
counted = {name: _counted(work)[0] for name, work in works.items()}
assert "torch._dynamo" not in sys.modules
from torch.utils.flop_counter import FlopCounterMode
for name, work in works.items():
    with FlopCounterMode(display=False) as torchs:
        work()
    assert counted[name] == torchs.get_total_flops() > 0, name
"""


def test_it_counts_what_torchs_own_counter_does_without_its_seconds_of_imports() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_TORCH], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_of_a_tensor_that_ranks_share_only_this_ranks_part_is_counted() -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        rows = distribute_tensor(torch.ones(8, 8), init_device_mesh("cpu", (2,)), [Shard(0)])
        rows @ rows.T  # the first time, torch also works out the product's shape, on meta tensors
        with flop_counter() as counter:
            rows @ rows.T
    finally:
        dist.destroy_process_group()
    assert counter.flops == 2 * 4 * 8 * 8
