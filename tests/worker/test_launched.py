"""``perfci.distributed`` with a launcher: ranks that it started, on this node and on another."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest

from perfci.api.distributed.launched import Meeting, accepted, connected, meeting
from tests.builders.project import assert_ends
from tests.worker.driver import Bench
from tests.worker.fake_ranks import write_ranks_torch
from tests.worker.launcher import NODE, second_node

pytestmark = pytest.mark.processes

LAUNCHER = shlex.join([sys.executable, str(Path(__file__).with_name("launcher.py"))])
THREADS = {
    "OMP_NUM_THREADS": "4",
    "OPENBLAS_NUM_THREADS": "1",
    "RES_OPTIONS": "timeout:1 attempts:1",  # torch asks for the names of addresses
}
HERE = socket.gethostname()
RANKS = """
import os, socket, time
import perfci
import torch
import torch.distributed as dist

def ranks(fail=""):
    rank, numbers = dist.get_rank(), torch.ones(8)
    names = "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "OMP_NUM_THREADS"
    print("is", rank, socket.gethostname(), *(os.environ[name] for name in names), flush=True)
    assert "PERFCI_RANKS" not in os.environ
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
    return step

@perfci.benchmark
def case():
    work = perfci.distributed(ranks, ranks=2, timeout={timeout}, args=({fail!r},), launcher={launcher!r})
    work.ranks._timeout = {step_timeout}  # joining and setting up take longer on a busy machine
    return work
"""  # noqa: E501


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[str]:
    """Yield a launcher whose second task is on another node."""
    if os.geteuid() != 0:
        pytest.skip("a second node is a network of its own: for root alone")
    with second_node() as pid:
        yield f"{LAUNCHER} --second {pid} 2"


@pytest.fixture(params=[HERE, pytest.param(NODE, marks=pytest.mark.slow)])
def launcher(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return a launcher, and the node of its second task."""
    if request.param == HERE:
        return f"{LAUNCHER} 2", HERE
    return request.getfixturevalue("two_nodes"), NODE


@pytest.fixture
def farthest(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return a launcher whose second task is on another node where there can be one."""
    if os.geteuid() == 0:
        return request.getfixturevalue("two_nodes"), NODE
    return f"{LAUNCHER} 2", HERE


def source(launcher: str, fail: str = "", timeout: float = 60, step_timeout: float = 1e6) -> str:
    return RANKS.format(fail=fail, timeout=timeout, step_timeout=step_timeout, launcher=launcher)


def below(pid: int) -> list[int]:
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [one for child in children for one in (child, *below(child))]


@pytest.mark.torch
def test_ranks_of_a_launcher_know_their_places_make_steps_and_end_with_a_killed_worker(
    bench: Bench, launcher: tuple[str, str]
) -> None:
    words, node = launcher
    order = bench.order(bench.write(source(words)), "case")
    with bench.start(order, **THREADS) as worker:
        worker.wait_for("ready")
        assert bench.block(worker, calls=3)["samples"] == 3
        places = ["0 2 0 1 2", "1 2 0 1 2"] if node == HERE else ["0 1 0 2 4", "0 1 1 2 4"]
        for rank, place in enumerate(places):
            assert f"[rank {rank}] is {rank} {(HERE, node)[rank]} {place}\n" in worker.printed()
        started = below(worker.process.pid)
        os.kill(worker.process.pid, signal.SIGKILL)
        for pid in started:
            assert_ends(pid)
    assert len(started) == 5  # the launcher, and for each rank who starts it and stands by


def test_ranks_in_the_middle_of_a_step_end_with_a_worker_that_is_killed(
    bench: Bench, farthest: tuple[str, str]
) -> None:
    hangs = "import ctypes; ctypes.PyDLL(None).sleep(99)"  # with Python's lock: no thread could act
    write_ranks_torch(bench.root)
    order = bench.order(bench.write(source(farthest[0], hangs, timeout=1e6)), "case")
    with bench.start(order, **THREADS) as worker:
        while (said := worker.next()) and said.get("stage") != "warmup":
            pass
        sleep(0.5)  # one of them sleeps by then, the other waits for it
        started = below(worker.process.pid)
        os.kill(worker.process.pid, signal.SIGKILL)
        for pid in started:
            assert_ends(pid)
    assert len(started) == 5


@pytest.mark.parametrize(
    ("fail", "kind", "said"),
    [
        (
            "raise ValueError",
            "rank_raised",
            "rank 1 of 2 on {}, in its step, raised ValueError:\n",
        ),
        (
            "os.write(2, b'bye'); os._exit(3)",
            "rank_died",
            "rank 1 of 2 on {}, in its step, left with exit code 3:\n.*\nbye",
        ),
        (  # its child holds all that it had open
            "if os.fork(): os.kill(os.getpid(), 9)\ntime.sleep(99)",
            "rank_died",
            "rank 1 of 2 on {}, in its step, was ended by signal 9",
        ),
        (
            "time.sleep(99)",
            "rank_hung",
            "rank 1 of 2 on {} has not ended its step in 3 s: it is at bench",
        ),
        (
            "return",
            "ranks_diverged",
            "rank 1 has ended the step without it: rank 0 on",
        ),
    ],
)
def test_a_rank_that_fails_is_named_with_its_node(
    bench: Bench, farthest: tuple[str, str], fail: str, kind: str, said: str
) -> None:
    words, node = farthest
    write_ranks_torch(bench.root)
    order = bench.order(bench.write(source(words, fail, step_timeout=3)), "case")
    with bench.start(order, **THREADS) as worker:
        while (one := worker.next()) and one.get("stage") != "warmup":
            pass
        started = below(worker.process.pid)
        failed = worker.wait_for("failed")
        assert failed["kind"] == kind
        assert re.search(said.format(node), failed["message"], re.DOTALL)
        assert worker.end() == 1
        for pid in started:
            assert_ends(pid)


def failed_launch(bench: Bench, launcher: str, timeout: float = 20) -> str:
    text = source(launcher, timeout=timeout).replace("import torch", "import sys")
    text = text.replace("import sys.distributed as dist\n", "")
    failed = bench.failure(bench.write(text))
    assert failed["kind"] == "rank_launcher"
    return str(failed["message"])


def test_a_launcher_that_is_not_there_is_named(bench: Bench) -> None:
    assert "there is no no-such-srun on the worker's PATH" in failed_launch(
        bench, "no-such-srun -n2"
    )


def test_a_launcher_that_ends_is_quoted_with_what_to_do(bench: Bench) -> None:
    said = failed_launch(bench, "sh -c 'echo no such partition; exit 1'")
    assert "it ended with exit code 1 before all ranks had joined; 0 of 2 ranks joined" in said
    assert "try it by hand on this node: sh -c 'echo no such partition; exit 1' hostname" in said
    assert said.endswith("It said:\nno such partition")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("--size 3 3", "it starts 3 processes, by SLURM_NTASKS on "),
        ("--unnumbered 2", "doesn't know which rank it is: it has none of RANK, "),
        ("--without 0 --size 2 3", " is rank 2, by SLURM_PROCID"),
    ],
)
def test_a_launcher_that_starts_other_ranks_than_asked_for_is_told_so(
    bench: Bench, options: str, what: str
) -> None:
    said = failed_launch(bench, f"{LAUNCHER} {options}")
    assert what in said


def test_ranks_that_don_t_join_are_named(bench: Bench) -> None:
    said = failed_launch(bench, f"{LAUNCHER} --without 0 2", timeout=2)
    assert f"not all ranks have joined in 2 s; 1 of 2 ranks joined (1 on {HERE}); 0 didn't" in said


def test_who_has_not_the_key_is_refused_and_no_rank() -> None:
    listener, where = meeting(backlog=1)
    with listener:
        wrong = Meeting(("127.0.0.1",), where.port, bytes(32))
        pid = os.fork()
        if not pid:
            try:
                connected(wrong)
            except ConnectionError as error:
                os._exit(0 if "it doesn't prove the key" in str(error) else 1)
            os._exit(2)
        assert accepted(listener, where.key) is None
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_key_is_on_no_command_line_and_no_line_of_a_log(bench: Bench) -> None:
    path = bench.root / "key"
    said = failed_launch(
        bench, f"sh -c 'cat /proc/$$/cmdline; echo $PERFCI_RANKS > {path}; exit 1'"
    )
    key = re.match("[0-9a-f]{64}", path.read_text())
    assert key
    assert key[0] not in said + (bench.root / "log.txt").read_text()
