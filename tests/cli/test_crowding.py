"""Both sides live at once: a lack of room for both is no fault of head's."""

from __future__ import annotations

from typing import Any

import pytest

from perfci.measure.round import ran_out_of_memory
from perfci.model.case import Failure
from tests.builders.project import Project, rows

pytestmark = pytest.mark.processes

BENCHMARKS = """\
import fcntl
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
def small():
    return lambda: sum(range(500))
"""
LARGE = ("at_setup", "at_a_call", "without_a_name")


@pytest.fixture
def written(project: Project) -> Project:
    source = BENCHMARKS.replace("CARD", repr(f"{project.folder.parent}/card-"))
    project.write("benchmarks/bench_large.py", source)
    project.commit("base", **{"lib.py": "fits = True\n"})
    return project


def failures_of(report: dict[str, Any], case: str) -> dict[str, dict[str, Any]]:
    return {one["side"]: one for one in report["failures"] if one["case"] == case}


def test_sides_that_fit_alone_but_not_at_once_are_both_failed_and_neither_is_blamed(
    written: Project,
) -> None:
    report = written.report("compare", "HEAD", "HEAD", "--allow-same-commit", "--rounds", "2")
    assert report["verdict"]["status"] == "error", report["verdict"]
    for case in LARGE:
        failures = failures_of(report, case)
        assert set(failures) == {"base", "head"}
        for failure in failures.values():
            assert failure["kind"] == "no_room_for_both", case
            assert "don't fit at once" in failure["message"]
            assert "Tried to allocate 50.00 GiB" in failure["message"]
            assert 'Set `residency = "alternate"`' in failure["message"]
    assert any("fails on both sides" in reason for reason in report["verdict"]["reasons"])
    assert rows(report, "small")["latency_p50"]["status"] == "inconclusive"


def test_sides_that_do_not_fit_at_once_are_measured_one_at_a_time(written: Project) -> None:
    path = written.folder / "pyproject.toml"
    path.write_text(f'{path.read_text()}residency = "alternate"\n')
    report = written.report("compare", "HEAD", "HEAD", "--allow-same-commit", "--rounds", "2")
    assert report["failures"] == []
    for case in LARGE:
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
    kinds = {failure["kind"] for failure in project.report(*options)["failures"]}
    assert kinds == {"no_room_for_both"}
    path = project.folder / "pyproject.toml"
    path.write_text(f'{path.read_text()}residency = "alternate"\n')
    report = project.report(*options)
    assert report["failures"] == []
    assert rows(report, "large")["latency_p50"]["base"]["workers"] == 2
