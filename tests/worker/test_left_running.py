"""Calls that end and leave processes running: each would be measured beside all of them."""

from __future__ import annotations

import pytest

from tests.worker.driver import Bench

pytestmark = pytest.mark.processes

LEAVING = """
import subprocess
import perfci

STARTED = []

def orphan():
    subprocess.run("sleep 60 &", shell=True)

def child():
    STARTED.append(subprocess.Popen(["sleep", "60"]))

def in_a_session_of_its_own():
    STARTED.append(subprocess.Popen(["sleep", "60"], start_new_session=True))

@perfci.benchmark(leave=["orphan", "child", "in_a_session_of_its_own"])
def case(leave):
    return globals()[leave]

@perfci.benchmark
def by_set_up():
    orphan()
    child()
    return lambda: subprocess.run(["true"])
"""


def test_a_function_whose_calls_leave_processes_behind_fails(bench: Bench) -> None:
    failed = bench.failure(LEAVING, "case[leave=orphan]")
    assert failed["kind"] == "left_processes"
    assert "the calls ended and left processes running" in failed["message"]


@pytest.mark.parametrize("leave", ["child", "in_a_session_of_its_own"])
def test_a_function_whose_children_pile_up_fails(bench: Bench, leave: str) -> None:
    path = bench.write(LEAVING)
    with bench.start(bench.order(path, f"case[leave={leave}]")) as worker:
        worker.wait_for("ready")
        bench.block(worker, calls=5)
        worker.send({"do": "finish"})
        failed = worker.wait_for("failed")
        assert worker.end() == 1
    assert failed["kind"] == "left_processes"


def test_processes_of_the_set_up_may_live_on(bench: Bench) -> None:
    assert bench.measure(LEAVING, "by_set_up")["values"]["children_cpu_time"] < 0.05
