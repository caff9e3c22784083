"""``perfci explain``: real workers under instruments, and those that can't be looked into."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfci.model.worker import WorkOrder
from tests.builders.in_process import Done
from tests.builders.project import Project
from tests.builders.simulated import Simulated

if TYPE_CHECKING:
    pass


MODEL = """\
import torch

def forward(x):
    y = torch.relu(x)
    return y.sum()
"""
COPIES = """\
import torch

def forward(x):
    y = torch.relu(x)
    for _ in range(12):
        y = y.clone()
    return y.sum()
"""
BENCHMARK = """\
import perfci
import torch
from model import forward

@perfci.benchmark
def net():
    x = torch.randn(512, 512)
    return lambda: forward(x)

@perfci.benchmark
def still():
    x = torch.randn(512, 512)
    return lambda: torch.relu(x)
"""
DIES = """\
import os, sys
import perfci

@perfci.benchmark
def dies():
    def call():
        if sys.getswitchinterval() < 1e-4:  # so the sampler of stacks sets it
            os.abort()
    return call
"""
COUNTING = "def work():\n    return sum(x for x in range({}))\n"
PLAIN = """\
import perfci
from lib import work

@perfci.benchmark(metrics=["latency_p50"])
def counting():
    return work
"""


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose head's ``counting`` takes ten times as long, without torch."""
    project = Project(tmp_path_factory.mktemp("why") / "project")
    project.write("benchmarks/bench_one.py", PLAIN)
    project.commit("base", **{"lib.py": COUNTING.format(400)})
    project.commit("slower", **{"lib.py": COUNTING.format(4000)})
    return project


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Explained:
    folder = tmp_path_factory.mktemp("explained")
    project = Project(folder / "project")
    project.write("benchmarks/bench_dies.py", DIES)
    project.write("benchmarks/bench_net.py", BENCHMARK)
    project.commit("base", **{"model.py": MODEL})
    project.commit("copies", **{"model.py": COPIES})
    done = project.perfci("explain", "HEAD~1", "HEAD", "--within", "5m")
    assert done.code == 0, done.text
    return Explained(done)


class Explained:
    """``perfci explain`` of cases that copy more, that are the same, and that die."""

    def __init__(self, done: Done) -> None:
        self.err = done.err
        self.lines: dict[str, list[str]] = {}
        case = ""
        for line in done.out.splitlines():
            if line.startswith("  "):
                self.lines[case].append(line.strip())
            else:
                case = line
                self.lines[case] = []


@pytest.mark.torch
def test_extra_copies_are_named_with_their_line(explained: Explained) -> None:
    first = explained.lines["net"][0]
    assert first.startswith("`aten::copy_` 0 → 12 calls, "), first
    assert first.endswith(", model.py:6 (a changed line)"), first


@pytest.mark.torch
def test_the_same_code_is_silent(explained: Explained) -> None:
    assert explained.lines["still"] == ["nothing differs inside"]
    assert "times that differ by less than twice are left out: `perfci compare`" in explained.err


@pytest.mark.torch
def test_a_side_that_dies_only_under_an_instrument_says_so(explained: Explained) -> None:
    said = " ".join(explained.lines["dies"])
    assert "unavailable from python: base failed under it in record (SIGABRT)" in said


def test_a_file_that_is_no_report_is_refused(grown: Project) -> None:
    grown.write("odd.json", "{}")
    done = grown.perfci("explain", "odd.json")
    assert done.code == 4, done.text
    assert "[other-schema]" in done.text


@pytest.mark.torch
def test_compare_says_why_a_case_moved(grown: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfci.measure.explaining.EXPLAIN_S", 300.0)  # on a busy machine
    report = grown.report(
        "compare", "HEAD~1", "HEAD", "--set", "why=true", "--budget", "280s", code=1
    )
    (why,) = report["why"]
    assert why["case"] == "counting"
    assert why["differences"][0]["file"] == "lib.py"


def test_no_verdict_depends_on_what_fails_under_an_instrument(tmp_path: Path) -> None:
    def dies(order: WorkOrder, _number: int) -> tuple[str, str] | None:
        return ("SIGABRT", "crashed with SIGABRT") if order.instruments else None

    project = Project(tmp_path / "project", Simulated(before=dies))
    project.counting(2_000)
    project.commit("base")
    project.counting(4_000)
    project.commit("slower")
    report = project.report("compare", "HEAD~1", "HEAD", "--set", "why=true", code=1)
    (why,) = report["why"]
    assert why["untold"]["operators"].endswith("(SIGABRT): crashed with SIGABRT")
    assert project.report("compare", "HEAD~1", "HEAD", code=1)["why"] == []
    same = project.report("compare", "HEAD", "HEAD", "--allow-same-commit", "--set", "why=true")
    assert same["why"] == []
