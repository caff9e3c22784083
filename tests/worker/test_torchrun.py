"""``perfci.torchrun``: a training script, as it is, whose steps are the work."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import perfci
from perfci.errors import BenchmarkError
from tests.worker.driver import Bench

pytestmark = [pytest.mark.processes, pytest.mark.torch]
EXAMPLE = Path(__file__).parents[2] / "examples/training"
FIRST, LAST = 3, 60
ONE_THREAD = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
SCRIPT = """
import os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

assert __name__ == "__main__"
dist.init_process_group("gloo")
assert dist.get_world_size() == 2
assert dist.get_rank() == int(os.environ["LOCAL_RANK"])
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
second = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.01)
for number in range(1, {end} + 1):
    print(*sys.argv[1:], number, flush=True)
    optimizer.zero_grad()
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    second.step()
    {line}
"""
BENCHMARK = """
import perfci

@perfci.benchmark
def case():
    return perfci.torchrun(
        {command!r},
        ranks=2,
        steps=({first}, {last}),
        start_method={start!r},
    )
"""


@pytest.fixture
def bench(torch_bench: Bench) -> Bench:
    """Workers that find torch imported, as those of a fork server do."""
    return torch_bench


def benchmark(
    bench: Bench,
    line: str = "",
    end: int = 1000,
    command: tuple[str, ...] = ("train.py", "step"),
    start: str = "fork",
) -> Path:
    """Write the script, and the benchmark of it."""
    bench.write(SCRIPT.format(line=line, end=end), "train.py")
    source = BENCHMARK.format(command=command, first=FIRST, last=LAST, start=start)
    return bench.write(source)


def made(bench: Bench, rank: int) -> list[int]:
    """Return the numbers of the steps that a rank has begun."""
    lines = (bench.root / "log.txt").read_text().splitlines()
    before = f"[rank {rank}] step "
    return [int(line.removeprefix(before)) for line in lines if line.startswith(before)]


@pytest.mark.parametrize(
    ("command", "start"), [(("train.py", "step"), "fork"), (("-m", "train", "step"), "spawn")]
)
def test_steps_end_with_the_first_optimizers_and_the_script_is_left_before_its_end(
    bench: Bench, command: tuple[str, ...], start: str
) -> None:
    path = benchmark(bench, command=command, start=start)
    measured = bench.measure(path, env=ONE_THREAD, blocks=1)
    values = measured["values"]
    assert values["collectives"] == 1.0
    assert values["collective_bytes"] == 4.0 * (64 + 8)
    assert values["rank_peak_memory"] > 1e6
    assert values["differing_ranks"] == 0.0
    for rank in (0, 1):
        assert FIRST < len(made(bench, rank)) < LAST


def test_a_line_of_the_scripts_own_ends_steps(bench: Bench) -> None:
    line = "import perfci; perfci.step()"
    bench.measure(benchmark(bench, line), env=ONE_THREAD, blocks=1)
    assert FIRST < len(made(bench, 1)) < LAST
    assert perfci.step() is None  # no script of a rank


@pytest.mark.parametrize("parallel", ["ddp", "fsdp2"])
def test_the_example_trains_by_the_steps_that_it_gives(bench: Bench, parallel: str) -> None:
    shutil.copy(EXAMPLE / "train.py", bench.root)
    source = (EXAMPLE / "benchmarks/bench_training.py").read_text(encoding="utf-8")
    case = f"training[parallel={parallel}]"
    measured = bench.measure(bench.write(source), case, env=ONE_THREAD, blocks=1)
    values, missing = measured["values"], measured["missing"]
    assert values["collectives"] > 1.0
    assert values["exposed_communication"] <= values["communication_share"]
    assert ("differing_ranks" in missing) == (parallel == "fsdp2")  # a rank has its part of them


@pytest.mark.parametrize(
    ("line", "end", "kind", "message"),
    [
        ("", 10, "script_ended", "ended after 10 steps, and `steps` says that there are 60"),
        (
            "if number == 2 and dist.get_rank() == 1: raise ValueError('lost')",
            99,
            "rank_raised",
            "rank 1 of 2, in its set-up, raised ValueError: lost",
        ),
        ("if number == 3: sys.exit(3)", 99, "rank_raised", "in its step, raised SystemExit: 3"),
    ],
)
def test_a_script_that_ends_early_or_fails_says_so(
    bench: Bench, line: str, end: int, kind: str, message: str
) -> None:
    path = benchmark(bench, line, end)
    with bench.start(bench.order(path, "case"), **ONE_THREAD) as worker:
        if end == 10:
            worker.wait_for("ready")
            worker.send(
                {
                    "do": "block",
                    "lead_ins": [0] * 1,
                    "calls": 20,
                    "collector": "perfci",
                    "turn": None,
                }
            )
        failed = worker.wait_for("failed")
    assert failed["kind"] == kind
    assert message in failed["message"]
    if "lost" in line:
        assert 'train.py", line ' in failed["message"]
        assert "/perfci/api/distributed/" not in failed["message"]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("train.py", {}),
        ([__file__], {"steps": (20, 30)}),
        ([__file__], {"steps": (0, 99)}),
        ([__file__], {"ranks": 0}),
    ],
)
def test_what_is_no_script_is_refused_where_it_is_written(
    command: object, options: dict[str, object]
) -> None:
    with pytest.raises(BenchmarkError, match=r"test_torchrun\.py:\d+: perfci\.torchrun"):
        perfci.torchrun(command, **{"ranks": 2, **options})  # type: ignore[arg-type]
