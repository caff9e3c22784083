"""``perfci.distributed``: ranks that make their steps together; which of them failed, and how."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from time import sleep

import pytest

import perfci
from perfci.errors import BenchmarkError
from tests.builders.project import assert_ends
from tests.worker.driver import Bench
from tests.worker.fake_ranks import write_ranks_torch

pytestmark = pytest.mark.processes

ONE_THREAD = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
EXAMPLES = Path(__file__).parents[2] / "examples/distributed/benchmarks/bench_ranks.py"
RANKS = """
import multiprocessing, os, time
import perfci
import torch
import torch.distributed as dist

def ranks(fail=""):
    rank, numbers = dist.get_rank(), torch.ones(8)
    assert os.environ["LOCAL_RANK"] == str(rank)
    assert multiprocessing.get_start_method(allow_none=True) is None  # as under torchrun
    assert (dist.get_world_size(), torch.get_num_threads()) == (2, 1)
    dist.all_reduce(numbers)
    assert numbers.sum() == 16
    steps = 0

    def step():
        nonlocal steps
        steps += 1
        if rank == 1 and steps == 3 and fail:
            if fail == "return":
                return
            exec(fail)
        dist.all_reduce(numbers)
    return step if rank == 0 or fail != "nothing" else None

@perfci.benchmark
def case():
    return perfci.distributed(ranks, ranks=2, timeout={timeout}, args=({fail!r},), start_method={start!r})
"""  # noqa: E501


@pytest.fixture
def bench(torch_bench: Bench) -> Bench:
    """Workers that find torch imported, as those of a fork server do."""
    return torch_bench


def source(fail: str = "", start: str = "fork", timeout: float = 60) -> str:
    return RANKS.format(fail=fail, start=start, timeout=timeout)


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.fixture
def unreal(bench: Bench) -> Bench:
    """A tree with a torch of its own, whose ranks only meet."""
    write_ranks_torch(bench.root)
    return bench


@pytest.mark.torch
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_ranks_make_their_steps_and_wait_without_spinning(
    bench: Bench, tmp_path: Path, start: str
) -> None:
    if start == "spawn":  # its ranks run the file that their worker's process ran first
        bench = Bench(tmp_path / "fresh")
    order = bench.order(bench.write(source(start=start)), "case")
    with bench.start(order, **ONE_THREAD) as worker:
        worker.wait_for("ready")
        assert bench.block(worker, calls=3)["samples"] == 3
        waiting = children(worker.process.pid)
        before = sum(map(cpu_ticks, waiting))
        sleep(0.3)
        assert sum(map(cpu_ticks, waiting)) - before < 8  # of 60, of two that spin
        os.kill(worker.process.pid, signal.SIGKILL)
        for pid in waiting:
            assert_ends(pid)
    assert len(waiting) >= 2


def test_ranks_in_the_middle_of_a_step_end_with_a_worker_that_is_killed(unreal: Bench) -> None:
    order = unreal.order(unreal.write(source("time.sleep(99)", timeout=1e9)), "case")
    with unreal.start(order, **ONE_THREAD) as worker:
        while (said := worker.next()) and said.get("stage") != "warmup":
            pass
        sleep(0.5)  # one of them sleeps by then, the other waits for it
        ranks = children(worker.process.pid)
        os.kill(worker.process.pid, signal.SIGKILL)
        assert len(ranks) == 2
        for pid in ranks:
            assert_ends(pid)


@pytest.mark.parametrize(
    ("fail", "kind", "said"),
    [
        ("raise ValueError", "rank_raised", "rank 1 of 2, in its step, raised ValueError:\n"),
        (
            "os.write(2, b'bye'); os._exit(3)",
            "rank_died",
            "rank 1 of 2, in its step, ended with exit code 3:\nbye",
        ),
        (  # its child holds all that it had open
            "if os.fork(): os.kill(os.getpid(), 9)\ntime.sleep(99)",
            "rank_died",
            "rank 1 of 2, in its step, was ended by signal 9",
        ),
        (
            "time.sleep(99)",
            "rank_hung",
            "; rank 1 is at bench",
        ),
        ("return", "rank_hung", "rank 0 of 2 has not ended its step in 1 s: rank 0 is at"),
        ("dist.barrier()", "rank_hung", "rank 0, 1 of 2 has not ended its step in 1 s"),
        (
            "nothing",
            "rank_raised",
            "rank 1 of 2, in its set-up, raised TypeError: `ranks` returned",
        ),
    ],
)
def test_a_rank_that_fails_is_named(unreal: Bench, fail: str, kind: str, said: str) -> None:
    order = unreal.order(unreal.write(source(fail, timeout=1)), "case")
    with unreal.start(order, **ONE_THREAD) as worker:
        failed = worker.wait_for("failed")
        assert failed["kind"] == kind
        assert said in failed["message"]
        assert worker.end() == 1


SYNCHRONISED = """
import perfci
import torch
import torch.distributed as dist

def ranks(average):
    weights, gradient = torch.ones(1000), torch.rand(1000) * (1 + dist.get_rank())

    def step():
        local = gradient.clone()
        if average:
            dist.all_reduce(local)
        weights.sub_(local, alpha=0.1)
        return {"weights": weights, "rows": len(weights)}
    return step

@perfci.benchmark(average=[1, 0])
def case(average):
    return perfci.distributed(ranks, ranks=2, start_method="fork", args=(average,))
"""


@pytest.mark.torch
@pytest.mark.parametrize(("average", "differ"), [(1, 0.0), (0, 1.0)])
def test_ranks_whose_weights_run_apart_are_counted_and_named(
    bench: Bench, average: int, differ: float
) -> None:
    name = f"case[average={average}]"
    measured = bench.measure(SYNCHRONISED, name, env=ONE_THREAD)
    assert measured["values"]["differing_ranks"] == differ
    remarks = {name: remark for name, remark in measured["remarks"].items() if "differ" in name}
    if not differ:
        assert not remarks
        return
    assert remarks["differing_ranks"]["code"] == "rank-differs"
    assert (
        "differing_ranks"
        not in bench.measure(SYNCHRONISED, name, env=ONE_THREAD, accuracy=False)["values"]
    )


@pytest.mark.torch
@pytest.mark.parametrize("name", ["ddp", "fsdp2", "tp"])
def test_the_examples_make_their_steps(bench: Bench, name: str) -> None:
    order = bench.order(bench.write(EXAMPLES.read_text(encoding="utf-8")), name)
    with bench.start(order, **ONE_THREAD) as worker:
        worker.wait_for("ready")
        assert bench.block(worker, calls=2)["samples"] == 2


def step() -> None:
    """Stand for a function that another process can import."""


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (lambda: None, {}),
        (step, {"ranks": 0}),
    ],
)
def test_what_is_no_group_of_ranks_is_refused_where_it_is_written(
    function: object, options: dict[str, object]
) -> None:
    with pytest.raises(BenchmarkError, match=r"test_distributed\.py:\d+: perfci\.distributed"):
        perfci.distributed(function, **{"ranks": 2, **options})  # type: ignore[arg-type]
