"""Both sides live at once. What only one of them can have is no fault of head's."""

from __future__ import annotations

import socket

import pytest

from perfci.measure.round import ran_out_of_memory
from perfci.model.case import Failure
from tests.builders.project import Project, rows

pytestmark = pytest.mark.processes

BENCHMARKS = """\
import fcntl
import socket
from pathlib import Path

import perfci
from lib import fits

class OutOfMemoryError(RuntimeError):
    '''torch's, of a card that a lock stands for: whoever has it has the memory.'''

def take(name, error=OutOfMemoryError):
    card = open(CARD + name, "w")
    try:
        fcntl.flock(card, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise error("CUDA out of memory. Tried to allocate 50.00 GiB")
    if not fits:
        raise error("CUDA out of memory. Tried to allocate 500.00 GiB")
    return card

@perfci.benchmark
def at_setup():
    card = take("setup")
    return lambda: card.fileno()

@perfci.benchmark
def at_a_call():
    cards = []
    return lambda: cards or cards.append(take("call"))

@perfci.benchmark
def without_a_name():
    card = take("unnamed", RuntimeError)
    return lambda: card.fileno()

@perfci.benchmark
def port():
    server = socket.socket()
    server.bind(("127.0.0.1", PORT))
    server.listen()
    return lambda: server.fileno()

@perfci.benchmark
def small():
    return lambda: sum(range(500))
"""
TAKEN = {
    **dict.fromkeys(("at_setup", "at_a_call", "without_a_name"), "Tried to allocate 50.00 GiB"),
    "port": "Address already in use",
}


@pytest.fixture
def written(project: Project) -> Project:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # nobody takes one that was just given back
    source = BENCHMARKS.replace("CARD", repr(f"{project.folder.parent}/card-"))
    source = source.replace("PORT", str(port))
    project.write("benchmarks/bench_large.py", source)
    project.commit("base", **{"lib.py": "fits = True\n"})
    return project


def test_sides_that_fit_alone_but_not_at_once_are_measured_one_at_a_time(written: Project) -> None:
    report = written.report("compare", "HEAD", "HEAD", "--allow-same-commit", "--rounds", "2")
    assert report["failures"] == []
    for case, why in TAKEN.items():
        assert rows(report, case)["latency_p50"]["base"]["workers"] == 2, case
        (note,) = [note for note in report["notes"] if note.startswith(f"{case}: ")]
        assert "one at a time" in note
        assert why in note
    assert not any(note.startswith("small: ") for note in report["notes"])


def test_with_alternate_residency_no_side_fails_first(written: Project) -> None:
    path = written.folder / "pyproject.toml"
    path.write_text(f'{path.read_text()}residency = "alternate"\n')
    report = written.report("compare", "HEAD", "HEAD", "--allow-same-commit", "--rounds", "2")
    assert report["failures"] == []
    for case in TAKEN:
        assert rows(report, case)["latency_p50"]["base"]["workers"] == 2, case
    written.commit("more", **{"lib.py": "fits = sorted([True])\n"})
    done = written.perfci("explain", "HEAD~1", "HEAD", "-k", "at_setup")
    assert done.code == 0, done.text
    assert "OutOfMemoryError" not in done.text


def test_a_head_that_has_no_room_alone_is_to_blame(written: Project) -> None:
    written.commit("hungrier", **{"lib.py": "fits = False\n"})
    options = ("--rounds", "2", "-k", "at_setup")
    report = written.report("compare", "HEAD~1", "HEAD", *options, code=3)
    assert report["verdict"]["status"] == "error"
    (failure,) = report["failures"]
    assert (failure["case"], failure["side"]) == ("at_setup", "head")
    assert failure["kind"] == "OutOfMemoryError"


@pytest.mark.parametrize(
    ("kind", "message", "memory"),
    [
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.", True),
        ("MemoryError", "MemoryError", True),
        ("out_of_memory", "the kernel killed it for memory (SIGKILL)", True),
        ("AcceleratorError", "CUDA error: out of memory", True),
        (
            "RuntimeError",
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
            True,
        ),
        ("RuntimeError", "DefaultCPUAllocator: can't allocate memory: you tried to ...", True),
        ("RuntimeError", "CUDA error: an illegal memory access was encountered", False),
        ("SIGSEGV", "crashed with SIGSEGV", False),
        ("ValueError", "shapes do not match", False),
    ],
)
def test_what_is_a_failure_for_memory(kind: str, message: str, memory: bool) -> None:
    assert ran_out_of_memory(Failure("c", "head", "setup", kind, message)) is memory


ON_A_CARD = """\
import perfci
import torch

@perfci.benchmark
def large():
    total = torch.cuda.mem_get_info()[1]
    held = torch.empty(int(0.6 * total), dtype=torch.uint8, device="cuda")
    return lambda: held[:1].add_(1)
"""


@pytest.mark.gpu
@pytest.mark.torch
def test_sides_that_take_most_of_a_real_card_are_measured_one_at_a_time(project: Project) -> None:
    project.commit("base", **{"benchmarks/bench_large.py": ON_A_CARD})
    options = ("compare", "HEAD", "HEAD", "--allow-same-commit", "--rounds", "2")
    report = project.report(*options)
    assert report["failures"] == []
    assert any("one at a time" in note for note in report["notes"])
    assert rows(report, "large")["latency_p50"]["base"]["workers"] == 2
