"""Provisional results of a session, after the first rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.project import Project
from tests.builders.simulated import Simulated


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", Simulated())
    project.counting(1000)
    project.commit("base")
    project.counting(1300)
    project.commit("slower")
    return project


def test_what_looks_wrong_is_said_early_and_is_in_no_report(project: Project) -> None:
    ended = project.perfci("compare", "HEAD~1", "HEAD", "--rounds", "5", "--json", "report.json")
    (line,) = [one for one in ended.err.splitlines() if "Provisional" in one]
    assert "counting latency_p50 +2" in line
    assert "steady" not in line
    assert "rovisional" not in ended.out
    assert "rovisional" not in (project.folder / "report.json").read_text()


def test_quiet_says_nothing_early(project: Project) -> None:
    ended = project.perfci("compare", "HEAD~1", "HEAD", "--rounds", "5", "--quiet")
    assert "rovisional" not in ended.err
