"""A case that its suite skips as it runs: named as skipped, and never as broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfci.model.worker import WorkOrder
from tests.builders.project import Project, rows
from tests.builders.simulated import Simulated

BENCH = """\
import perfci

@perfci.benchmark
def steady():
    return lambda: sum(range(500))

@perfci.benchmark
def case():
    return lambda: sum(range(500))
"""
REASON = "its setup raised NotImplementedError('no card')"


@pytest.fixture
def workers() -> Simulated:
    return Simulated()


@pytest.fixture
def project(tmp_path: Path, workers: Simulated) -> Project:
    project = Project(tmp_path / "project", workers)
    project.commit("base", **{"benchmarks/bench_a.py": BENCH})
    project.commit("head", **{"other.txt": "differs"})
    return project


def skip_on(workers: Simulated, *sides: str) -> None:
    def before(order: WorkOrder, number: int) -> tuple[str, str] | None:
        del number
        skipped = order.case == "case" and order.side in sides
        return ("test_skipped", REASON) if skipped else None

    workers.before = before


def compare(project: Project) -> dict[str, Any]:
    return project.report("compare", "HEAD~", "HEAD", "--rounds", "6", "--all", code=None)


def test_a_case_that_both_sides_skip_is_skipped_with_its_reason(
    project: Project, workers: Simulated
) -> None:
    skip_on(workers, "base", "head")
    report = compare(project)
    assert report["skipped"] == {"case": REASON}
    assert report["failures"] == []
    assert report["verdict"]["status"] == "pass"
    assert {row["case"] for row in report["results"]} == {"steady"}
    assert workers.started["case", "head"] == 1


def test_a_case_that_base_alone_skips_is_new(project: Project, workers: Simulated) -> None:
    skip_on(workers, "base")
    report = compare(project)
    assert rows(report, "case")["latency_p50"]["status"] == "new"
    assert report["verdict"]["status"] == "pass"


def test_a_case_that_head_alone_skips_fails(project: Project, workers: Simulated) -> None:
    skip_on(workers, "head")
    report = compare(project)
    assert rows(report, "case")["latency_p50"]["status"] == "failed"
    assert report["verdict"]["status"] == "error"
    assert REASON in " ".join(report["verdict"]["reasons"])


@pytest.mark.parametrize("command", ["run", "baseline"])
def test_a_side_alone_skips_too(project: Project, workers: Simulated, command: str) -> None:
    if command == "run":
        skip_on(workers, "head")
        assert project.report("run")["skipped"] == {"case": REASON}
        return
    assert project.perfci("baseline", "update").code == 0
    skip_on(workers, "base", "head")
    report = project.report("check", code=None)
    assert report["skipped"] == {"case": REASON}
    assert report["failures"] == []
    assert "case" not in {row["case"] for row in report["results"]}
