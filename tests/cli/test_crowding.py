"""Both sides live at once: a lack of room for both is no fault of head's."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.measure.round import ran_out_of_memory
from perfci.model.case import Failure
from tests.builders.project import Project, rows

pytestmark = pytest.mark.processes

CARD = """\
import fcntl
from pathlib import Path

import perfci
from lib import fits

class OutOfMemoryError(RuntimeError):
    '''torch's, of a card that a lock stands for: whoever has it has the memory.'''

def take():
    card = open(CARD, "w")
    try:
        fcntl.flock(card, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ERROR("CUDA out of memory. Tried to allocate 50.00 GiB")
    if not fits:
        raise ERROR("CUDA out of memory. Tried to allocate 500.00 GiB")
    return card

@perfci.benchmark
def large():
    SETUP

@perfci.benchmark
def small():
    return lambda: sum(range(500))
"""
AT_SETUP = "card = take(); return lambda: card.fileno()"
AT_A_CALL = "cards = []; return lambda: cards or cards.append(take())"


def written(project: Project, card: Path, setup: str, error: str = "OutOfMemoryError") -> str:
    source = CARD.replace("SETUP", setup).replace("CARD", repr(str(card))).replace("ERROR", error)
    project.write("benchmarks/bench_large.py", source)
    project.write("lib.py", "fits = True\n")
    return project.commit("base")


@pytest.mark.parametrize(
    ("setup", "error"),
    [(AT_SETUP, "OutOfMemoryError"), (AT_A_CALL, "OutOfMemoryError"), (AT_SETUP, "RuntimeError")],
    ids=["set-up", "first call", "an error without a name"],
)
def test_sides_that_fit_alone_but_not_at_once_are_both_failed_and_neither_is_blamed(
    project: Project, tmp_path: Path, setup: str, error: str
) -> None:
    base = written(project, tmp_path / "card", setup, error)
    report = project.report("compare", base, base, "--same")
    assert report["verdict"]["status"] == "inconclusive", report["verdict"]
    failures = {f["side"]: f for f in report["failures"] if f["case"] == "large"}
    assert set(failures) == {"base", "head"}
    for failure in failures.values():
        assert failure["kind"] == "no_room_for_both"
        assert "don't fit at once" in failure["message"]
        assert "Tried to allocate 50.00 GiB" in failure["message"]
    assert any("fails on both sides" in reason for reason in report["verdict"]["reasons"])
    assert rows(report, "small")["latency_p50"]["status"] != "failed"


def test_a_head_that_has_no_room_alone_is_to_blame(project: Project, tmp_path: Path) -> None:
    base = written(project, tmp_path / "card", AT_SETUP)
    project.commit("hungrier", **{"lib.py": "fits = False\n"})
    report = project.report("compare", base, "HEAD", code=3)
    assert report["verdict"]["status"] == "error"
    failures = [f for f in report["failures"] if f["case"] == "large"]
    assert [(f["side"], f["kind"]) for f in failures] == [("head", "OutOfMemoryError")]


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
