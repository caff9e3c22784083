"""What a worker says, in which order, and how it leaves."""

from __future__ import annotations

import ast
import base64
import os
import subprocess
import sys

import pytest

from tests.worker.driver import Bench, other_python

PLAIN = """\
import perfci

@perfci.benchmark
def case():
    return lambda: sum(range(100))
"""

COUNTING = """\
import perfci

@perfci.benchmark
def case():
    calls = []

    def call():
        calls.append(1)

    return call, perfci.metric("calls", lambda: len(calls), exact=True)
"""


def test_each_stage_is_reported_before_it_begins(bench: Bench) -> None:
    path = bench.write(PLAIN)
    with bench.start(bench.order(path, "case")) as worker:
        ready = worker.wait_for("ready")
        assert worker.stages == ["import", "setup", "first_call", "warmup", "measure"]
        assert ready["call_s"] > 0
        worker.send({"do": "finish"})
        worker.wait_for("output")
        assert worker.stages[-1] == "finish"
        assert worker.end() == 0


def test_a_block_makes_the_bursts_and_calls_asked_for(bench: Bench) -> None:
    path = bench.write(PLAIN)
    with bench.start(bench.order(path, "case")) as worker:
        worker.wait_for("ready")
        said = bench.block(worker, bursts=3, calls=7)
    assert (said["bursts"], said["samples"], len(said["run_delay"])) == (3, 7, 3)


OF_THE_MEMORY = 5
"""Calls that are made after the bursts, for the peak of memory alone."""


def test_the_calls_of_a_lead_in_are_timed(bench: Bench) -> None:
    path = bench.write(COUNTING.replace("calls.append(1)", "__import__('time').sleep(0.002)"))
    with bench.start(bench.order(path, "case", growth=False)) as worker:
        worker.wait_for("ready")
        block = bench.block(worker, bursts=2, calls=0, lead_in=3)
    assert block["lead_ins"] == [3, 3]
    assert block["leading"] > 0.0119  # a sleep is never shorter


def test_a_lead_in_is_made_and_not_recorded(bench: Bench) -> None:
    path = bench.write(COUNTING)
    with bench.start(bench.order(path, "case", growth=False, warmup_s=0.0)) as worker:
        worker.wait_for("ready")
        bench.block(worker, bursts=2, calls=3, lead_in=1)
        worker.send({"do": "finish"})
        measured = worker.wait_for("output")["measurement"]
    first_call = 1
    assert measured["values"]["calls"] == first_call + 2 * (1 + 3) + OF_THE_MEMORY
    assert sum(len(base64.b64decode(one)) for one in measured["samples_ns"]) == 2 * 3 * 8


def test_a_worker_leaves_at_once_when_its_parent_is_gone(bench: Bench) -> None:
    path = bench.write(PLAIN)
    with bench.start(bench.order(path, "case")) as worker:
        worker.wait_for("ready")
        worker.hang_up()
        assert worker.end() == 0


def test_a_worker_runs_under_another_python_without_perfci_or_torch(bench: Bench) -> None:
    python = other_python("3.12")
    if python is None:
        pytest.skip("no python3.12")
    telling = "    print('version', sys.version_info[:2], 'torch' in sys.modules)\n"
    source = "import sys\n" + PLAIN.replace("    return", telling + "    return")
    measured = bench.measure(source, python=python)
    assert measured["values"]["cold_start"] > 0
    assert "version (3, 12) False" in (bench.root / "log.txt").read_text()


def test_only_the_sides_folders_are_added_to_its_pythons_path(bench: Bench) -> None:
    bench.measure(PLAIN.replace("    return", "    import sys\n    print(sys.path)\n    return"))
    alone = subprocess.run(
        [sys.executable, "-P", "-c", "import sys; print(sys.path)"],
        env={name: value for name, value in os.environ.items() if name[:6] != "PYTHON"},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = ast.literal_eval((bench.root / "log.txt").read_text())
    own = ast.literal_eval(alone.stdout)
    assert printed == [str(bench.root), str(bench.folder), *own]


def test_a_fork_left_behind_does_not_hide_the_workers_end(bench: Bench) -> None:
    path = bench.misbehaving("leaves_a_daemon")
    daemon = bench.folder / "daemon.pid"
    with bench.start(bench.order(path, "misbehaving")) as worker:
        worker.wait_for("ready")
        worker.send({"do": "finish"})
        worker.wait_for("output")
        try:
            assert worker.end() == 0
        finally:
            os.kill(int(daemon.read_text()), 9)
