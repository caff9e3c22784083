"""``--last-failed``: failures of the last comparison are kept, measured, shown and forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.project import QUICK, Project
from tests.builders.simulated import Simulated

RUN = ("compare", "HEAD~1", "HEAD", "--rounds", "5")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", Simulated())
    project.write("pyproject.toml", QUICK)
    project.counting(1000)
    project.commit("base")
    project.counting(1300)
    project.commit("slower")
    return project


def kept(project: Project) -> Path:
    (path,) = project.cache.glob("*/last_failed.json")
    return path


def test_only_what_regressed_is_measured_again_until_it_is_mended(project: Project) -> None:
    assert project.perfci(*RUN).code == 1
    again = project.perfci(*RUN, "--last-failed")
    assert again.code == 1
    assert "--last-failed: 1 case of HEAD~1 with HEAD, 20" in again.err
    assert ": counting\n" in again.err
    assert "--last-failed left out 1 of 2 cases." in again.out
    assert "steady" not in again.out
    project.perfci(*RUN, "-k", "steady")
    assert json.loads(kept(project).read_text())["failed"] == {"counting": ["latency_p50"]}
    project.counting(1000)
    project.commit("mended")
    mended = ("compare", "HEAD~2", "HEAD", "--rounds", "5", "--all", "--last-failed")
    assert project.perfci(*mended).code == 0
    assert json.loads(kept(project).read_text())["failed"] == {}


@pytest.mark.parametrize("options", [("--rounds", "2"), ("--inject", "latency=50%")])
def test_what_says_nothing_of_the_code_changes_nothing(
    project: Project, options: tuple[str, str]
) -> None:
    project.perfci(*RUN)
    before = kept(project).read_text()
    project.perfci(*RUN, *options)
    assert kept(project).read_text() == before
