"""A round whose workers hand the turn to each other, and one of them ends early: real workers."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

import pytest

from perfci.config.keys import MeasureSettings, QuietTable
from perfci.measure.executor import Executor
from perfci.measure.machine.gpu_watch import GpuWatches
from perfci.measure.machine.isolation import child_environment
from perfci.measure.round import RoundContext, measure_round
from perfci.measure.round_side import RoundSide, WorkerTask, wrong_time
from perfci.measure.workers import Launch
from perfci.model.measuring import WorkerFailure, WorkerOutput
from perfci.model.worker import REPLACED, WorkerBlock, WorkOrder

pytestmark = pytest.mark.processes

SOURCE = """\
import gc
import os
import signal
import sys
import time
import perfci

def dies():
    os.kill(os.getpid(), signal.SIGKILL)

def hangs():
    time.sleep(600)

def closes():
    os.closerange(3, 1 << 16)

def fails():
    raise ValueError("late")

def stops_the_clock():
    now = time.monotonic_ns()
    sys.modules["perfci.worker.bursts"].monotonic_ns = lambda: now

def hurries_the_clock():
    sys.modules["perfci.worker.bursts"].monotonic_ns = lambda: 3 * time.monotonic_ns()

def collects():
    gc.collect()

def forks():
    if not os.fork():
        os._exit(0)
    os.wait()

@perfci.benchmark
def case():
    calls = iter(range(10**9))
    what = os.environ.get("WHAT", "")
    def call():
        in_a_block = gc.get_freeze_count() > 0
        if in_a_block and next(calls) == 10 and what in globals():
            globals()[what]()
        time.sleep(1e-4 if in_a_block or what != "disturbed" else 30e-3)
    return call
"""
SETTINGS = MeasureSettings(round_time=0.1)
ENDS = {
    "dies": ("SIGKILL", "killed by SIGKILL"),
    "hangs": ("timeout", "no answer within 3 s"),
    "closes": ("closed_pipe", "closed perfci's file descriptors"),
    "fails": ("ValueError", "late"),
    "stops_the_clock": ("wrong_clock", "its clock isn't perfci's: a block began"),
    "hurries_the_clock": ("wrong_clock", "its clock isn't perfci's"),
}


def results(folder: Path, **what: str) -> list[WorkerOutput | WorkerFailure | None]:
    """Measure one round, base first; ``what`` a side does after a while."""
    return [side.result for side in measured(folder, set(), **what)]


def measured(folder: Path, collecting: set[str], **what: str) -> tuple[RoundSide, ...]:
    file = folder / "bench_one.py"
    file.write_text(SOURCE, encoding="utf-8")
    tasks = []
    for side in ("base", "head"):
        order = WorkOrder(
            root=str(folder),
            python_path=(),
            benchmark_file=str(file),
            case="case",
            side=side,
            warmup_s=0.01,
            growth=False,
        )
        environment = child_environment(
            os.environ, QuietTable(), 1, (), {"WHAT": what.get(side, "")}
        )
        tasks.append(WorkerTask(order, Launch(sys.executable, environment), {}, 2.0))
    ends = time.monotonic() + 240
    return measure_round(
        RoundContext(Executor(), ends, GpuWatches(), collecting), tasks, 1, SETTINGS
    )


@pytest.mark.parametrize(
    ("what", "side"),
    [  # one that hangs is waited for
        *((what, side) for what in ENDS for side in ("base", "head") if what != "hangs"),
        ("hangs", "head"),
    ],
)
def test_a_side_that_ends_in_a_block_is_named_and_the_other_goes_on(
    tmp_path: Path, what: str, side: str
) -> None:
    by_side = dict(zip(("base", "head"), results(tmp_path, **{side: what}), strict=True))
    ended = by_side.pop(side)
    assert isinstance(ended, WorkerFailure)
    kind, said = ENDS[what]
    assert (ended.failure.kind, ended.failure.stage) == (kind, "measure")
    assert said in ended.failure.message
    (other,) = by_side.values()
    assert isinstance(other, WorkerOutput)
    assert other.samples > 10
    assert (other.bursts, other.beside) == ({}, {})


def test_a_fork_in_a_call_leaves_the_turn_with_its_worker(tmp_path: Path) -> None:
    base, head = results(tmp_path, head="forks")
    assert isinstance(base, WorkerOutput)
    assert isinstance(head, WorkerOutput)
    assert head.beside["latency_p50"] == -base.beside["latency_p50"]
    assert abs(head.beside["latency_p50"]) < 1.0


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_side_that_collects_garbage_leaves_both_collectors_to_python(
    tmp_path: Path, side: str
) -> None:
    collecting: set[str] = set()
    rounds = [measured(tmp_path, collecting, **{side: "collects"}) for _ in range(2)]
    assert collecting == {"case"}
    for number, sides in enumerate(rounds):
        for each in sides:
            assert isinstance(each.result, WorkerOutput)
            reasons = {block.set_aside == REPLACED for block in each.blocks}
            assert reasons == ({True, False} if number == 0 else {False})


def test_a_disturbed_warm_up_costs_a_round_none_of_its_calls(tmp_path: Path) -> None:
    base, head = results(tmp_path, base="disturbed", head="disturbed")
    assert isinstance(base, WorkerOutput)
    assert isinstance(head, WorkerOutput)
    # 3 or 4 where the round keeps to the plan of the warm-up; 12 at a load of 15 on two cores
    assert min(base.samples, head.samples) > 7


@pytest.mark.parametrize(
    ("started", "duration", "wrong"),
    [
        (100.0, 1.0, ""),
        (100.5, 0.5, ""),
        (99.9, 0.5, "a block began -0.1 s after its order, which it answered after 1"),
        (101.1, 0.0, "a block began 1.1 s after its order, which it answered after 1"),
        (100.5, 0.6, "0.6 s of bursts in a block that took 1 s"),
        (100.5, -0.1, "-0.1 s of bursts in a block that took 1 s"),
        (100.5, math.nan, "nan s of bursts in a block that took 1 s"),
    ],
)
def test_a_block_lies_between_its_order_and_its_answer(
    started: float, duration: float, wrong: str
) -> None:
    assert wrong_time(WorkerBlock(1, 1, started, duration), 100.0, 101.0) == wrong
