"""``perfci explain``: real workers under instruments, and those that can't be looked into."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.model.worker import WorkOrder
from tests.builders.project import Project
from tests.builders.simulated import Simulated

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
import os
import perfci
import torch
from model import forward

@perfci.benchmark
def net():
    x = torch.randn(512, 512)
    return lambda: forward(x)

@perfci.benchmark
def dies():
    x = torch.randn(8)
    def call():
        if torch.autograd._profiler_enabled():
            os.abort()
        return x + 1
    return call
"""


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("why") / "project")
    project.write("benchmarks/bench_net.py", BENCHMARK)
    project.commit("base", **{"model.py": MODEL})
    project.commit("copies", **{"model.py": COPIES})
    return project


def test_extra_copies_are_named_with_their_line(grown: Project) -> None:
    done = grown.perfci("explain", "HEAD~1", "HEAD", "-k", "net", "--within", "5m")
    assert done.code == 0, done.text
    first = done.out.splitlines()[1]
    assert first.startswith("  `aten::copy_` 0 → 12 calls, +"), done.out
    assert first.endswith(", model.py:6 (a changed line)"), done.out


def test_the_same_code_is_silent(grown: Project) -> None:
    done = grown.perfci("explain", "HEAD", "HEAD", "-k", "net", "--within", "5m")
    assert done.out == "net\n  nothing differs inside\n"


def test_a_side_that_dies_only_under_a_profiler_says_so(grown: Project) -> None:
    done = grown.perfci("explain", "HEAD~1", "HEAD", "-k", "dies", "--within", "5m")
    assert done.code == 0, done.text
    assert (
        "not told by operators, memory, python: base failed under it in record (SIGABRT)"
        in done.out
    )


def test_a_file_that_is_no_report_is_refused(grown: Project) -> None:
    grown.write("odd.json", "{}")
    done = grown.perfci("explain", "odd.json")
    assert done.code == 4, done.text
    assert "[other-report]" in done.text


def test_compare_says_why_a_case_moved(grown: Project) -> None:
    report = grown.report("compare", "HEAD~1", "HEAD", "-k", "net", "--why", code=1)
    (why,) = report["why"]
    assert why["case"] == "net"
    if "operators" not in why["untold"]:  # a machine that is too busy for ten seconds of profiles
        assert why["differences"][0]["file"] == "model.py"


def test_no_verdict_depends_on_what_fails_under_an_instrument(tmp_path: Path) -> None:
    def dies(order: WorkOrder, _number: int) -> tuple[str, str] | None:
        return ("SIGABRT", "crashed with SIGABRT") if order.instruments else None

    project = Project(tmp_path / "project", Simulated(before=dies))
    project.counting(2_000)
    project.commit("base")
    project.counting(4_000)
    project.commit("slower")
    report = project.report("compare", "HEAD~1", "HEAD", "--why", code=1)
    (why,) = report["why"]
    assert why["untold"]["operators"].endswith("(SIGABRT): crashed with SIGABRT")
    assert project.report("compare", "HEAD~1", "HEAD", "--no-why", code=1)["why"] == []
    assert project.report("compare", "HEAD", "HEAD", "--same", "--why")["why"] == []
