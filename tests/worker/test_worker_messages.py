"""What a worker says, in which order, and how it leaves."""

from __future__ import annotations

import ast
import base64
import os
import subprocess
import sys
from dataclasses import asdict

import pytest

from perfci.model.worker import WorkOrder
from perfci.worker.protocol import EXIT_PIPE_CLOSED, decode_order, encode
from tests.worker.driver import Bench, other_python, samples

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

CHILD = """\
import subprocess, sys
import perfci

PIPES = '''
import os
folder = "/proc/self/fd"
numbers = [n for n in os.listdir(folder) if os.path.lexists(f"{folder}/{n}")]
links = {int(n): os.readlink(f"{folder}/{n}") for n in numbers}
print("open:", [n for n, link in links.items() if n > 2 and link.startswith("pipe")], flush=True)
'''

@perfci.benchmark
def case():
    subprocess.run([sys.executable, "-c", PIPES], close_fds=False, check=True)
    return lambda: None
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


def test_the_samples_are_those_of_all_blocks_one_after_the_other(bench: Bench) -> None:
    measured = bench.measure(PLAIN, blocks=3)
    for block, encoded in zip(measured["said"], measured["samples_ns"], strict=True):
        of_block = samples([encoded])
        assert len(of_block) == block["samples"]
        assert min(of_block) > 0
        assert min(block["run_delay"]) >= 0
        assert block["set_aside"] == ""
    assert measured["device_samples_ns"] == []


def test_every_sample_is_one_call(bench: Bench) -> None:
    measured = bench.measure(COUNTING, growth=False, warmup_s=0.0)
    first_call = 1
    timed = sum(block["samples"] for block in measured["said"])
    assert measured["values"]["calls"] == first_call + timed + OF_THE_MEMORY


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


def test_a_worker_without_an_order_leaves(bench: Bench) -> None:
    with bench.start(bench.order()) as unordered:
        unordered.hang_up()
        unordered.wait_for("discovery")
        assert unordered.end() == 0


def test_a_users_subprocess_does_not_inherit_the_pipes(bench: Bench) -> None:
    path = bench.write(CHILD)
    with bench.start(bench.order(path, "case")) as worker:
        worker.wait_for("ready")
        assert "open: []" in worker.printed()


def test_what_the_benchmark_printed_is_not_lost(bench: Bench) -> None:
    path = bench.write(PLAIN.replace("    return", "    print('from set-up')\n    return"))
    with bench.start(bench.order(path, "case")) as worker:
        worker.wait_for("ready")
        worker.send({"do": "finish"})
        worker.wait_for("output")
        worker.end()
        assert "from set-up" in worker.printed()


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


def test_an_order_survives_the_pipe() -> None:
    order = WorkOrder(
        root="/a",
        python_path=("/a/src",),
        benchmark_files=("/b/bench_é.py",),
        seed=7,
    )
    assert decode_order(encode(asdict(order))) == order


def test_a_message_json_cannot_hold_is_an_error_and_not_a_bad_line() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"say": "ready", "call_s": float("nan")})


def test_closed_descriptors_have_an_exit_code_of_their_own(bench: Bench) -> None:
    path = bench.misbehaving("closes_descriptors")
    with bench.start(bench.order(path, "misbehaving")) as worker:
        while worker.next() is not None:
            pass
        assert worker.process.wait(30) == EXIT_PIPE_CLOSED


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


def test_a_fork_that_comes_back_does_not_speak_for_the_worker(bench: Bench) -> None:
    path = bench.misbehaving("forks_in_setup")
    failed = bench.failure(path, "misbehaving", warmup_s=0.2)
    assert failed["kind"] == "forked_copy"
