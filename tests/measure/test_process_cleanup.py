"""A worker's end: what it left in its group goes with it, and a free number is never signalled."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from perfci.measure.executor import ForkServer
from perfci.measure.pipes import PipeWorker
from perfci.measure.workers import (
    ChildDescriptors,
    Launch,
    SpawnedWorker,
    WorkerEnded,
    WorkerProcess,
)
from perfci.model.worker import WorkOrder
from tests.worker.driver import Bench

WITHIN_S = 30.0
LEAVES_A_CHILD = """\
import os, subprocess, time
import perfci

@perfci.benchmark
def fails():
    child = subprocess.Popen(["sleep", "600"])
    raise RuntimeError(f"left {child.pid}")

@perfci.benchmark
def hangs():
    child = subprocess.Popen(["sleep", "600"])
    with open("child.new", "w") as file:
        file.write(str(child.pid))
    os.rename("child.new", "child")
    time.sleep(600)

@perfci.benchmark
def takes_memory():
    return [bytearray(1 << 26) for _ in range(1 << 5)]
"""
LIMIT = 1 << 29


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "tree")


@pytest.fixture
def launch() -> Launch:
    return Launch(sys.executable, dict(os.environ), memory_limit=LIMIT)


@pytest.fixture(params=["forked", "of a fork server", "fresh"])
def start(
    request: pytest.FixtureRequest, bench: Bench, launch: Launch
) -> Iterator[Callable[[ChildDescriptors], WorkerProcess]]:
    """Start workers of the only benchmark file, each way."""
    path = bench.write(LEAVES_A_CHILD)
    if request.param == "fresh":
        yield partial(SpawnedWorker, launch, str(bench.root))
        return
    order = replace(bench.order(), benchmark_files=(), benchmark_file=str(path))
    if request.param == "of a fork server":
        order = replace(bench.order(), benchmark_files=(), preload=("subprocess",))
    server = ForkServer(order, launch, budget_end=math.inf)
    try:
        assert server.imported(WITHIN_S) == ""
        yield partial(server.forked, {})
    finally:
        server.close()


def order_of(bench: Bench, case: str) -> WorkOrder:
    return bench.order(bench.folder / "bench_one.py", case)


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether ``pid`` has ended: an orphan's zombie may wait for an idle reaper."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] in {"Z", "X"}


def test_a_worker_that_has_ended_takes_its_group_along_and_is_left_alone(
    bench: Bench,
    start: Callable[[ChildDescriptors], WorkerProcess],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[WorkerProcess] = []

    def remembered(ends: ChildDescriptors) -> WorkerProcess:
        started.append(start(ends))
        return started[0]

    worker = PipeWorker(order_of(bench, "fails"), remembered, math.inf)
    with pytest.raises(WorkerEnded) as ended:
        worker.expect("ready", WITHIN_S)
    child = int(ended.value.failure.message.rpartition(" ")[2])
    (process,) = started
    until(lambda: process.wait(0) is not None, "a look without waiting never saw its end")
    assert process.wait(0) == 1
    until(lambda: is_gone(child), "its child lives on, though its group should have ended with it")

    signalled: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: signalled.append(pid))
    monkeypatch.setattr(os, "killpg", lambda pid, _: signalled.append(pid))
    process.kill()
    assert signalled == []
    monkeypatch.undo()
    assert worker.close() == 0


def test_a_worker_that_lives_is_killed_with_its_group(
    bench: Bench, start: Callable[[ChildDescriptors], WorkerProcess]
) -> None:
    worker = PipeWorker(order_of(bench, "hangs"), start, math.inf)
    told = bench.root / "child"
    until(told.exists, "the benchmark never told its child")
    assert not is_gone(worker.pid)
    worker.close()
    assert is_gone(worker.pid)
    until(lambda: is_gone(int(told.read_text())), "its child lives on")


def test_a_pid_that_is_used_again_has_no_exit_code_yet(
    bench: Bench, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ForkServer(replace(bench.order(), preload=()), launch, budget_end=math.inf)
    try:
        assert server.imported(WITHIN_S) == ""
        messages: list[dict[str, object]] = [
            {"say": "forked", "pid": 7},
            {"say": "ended", "pid": 7, "code": 0},
            {"say": "forked", "pid": 7},
        ]
        monkeypatch.setattr(
            server._worker, "receive", lambda _: messages.pop(0) if messages else None
        )
        # its real forks, which nobody knows by their pids, end for want of orders
        ends = ChildDescriptors(*(os.open(os.devnull, os.O_RDWR) for _ in range(3)))
        server.forked({}, ends)
        assert server.forked({}, ends).wait(0) is None
        for end in (ends.orders, ends.results, ends.output):
            os.close(end)
    finally:
        monkeypatch.undo()
        server.close()


def test_a_worker_fails_at_its_memory_limit(
    bench: Bench, start: Callable[[ChildDescriptors], WorkerProcess]
) -> None:
    worker = PipeWorker(order_of(bench, "takes_memory"), start, math.inf)
    with pytest.raises(WorkerEnded) as ended:
        worker.expect("ready", WITHIN_S)
    assert (ended.value.failure.kind, ended.value.failure.stage) == ("MemoryError", "setup")
    assert worker.close() == 0
