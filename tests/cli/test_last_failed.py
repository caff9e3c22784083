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


def test_it_says_why_there_is_nothing_to_take(project: Project) -> None:
    never = project.perfci(*RUN, "--last-failed")
    assert never.code == 2
    assert "no comparison of this repository was made on this machine yet" in never.err
    assert "Leave out --last-failed" in never.err
    project.perfci(*RUN, "-k", "steady")
    none = project.perfci(*RUN, "--last-failed")
    assert none.code == 2
    assert "no case regressed or failed in the last comparison, HEAD~1 with HEAD of 20" in none.err


def test_a_case_that_is_gone_or_not_selected_is_named(project: Project) -> None:
    project.perfci(*RUN)
    other = project.perfci(*RUN, "--last-failed", "-k", "steady")
    assert "-k 'steady' selects none of the cases that failed last" in other.err
    path = project.folder / "benchmarks" / "bench_counting.py"
    path.write_text(path.read_text().replace("def counting", "def renamed"))
    gone = project.perfci("compare", "HEAD", ".", "--last-failed")
    assert (gone.code, "is here any more: counting" in gone.err) == (2, True)


@pytest.mark.parametrize("options", [("--rounds", "2"), ("--inject", "latency=50%")])
def test_what_says_nothing_of_the_code_changes_nothing(
    project: Project, options: tuple[str, str]
) -> None:
    project.perfci(*RUN)
    before = kept(project).read_text()
    project.perfci(*RUN, *options)
    assert kept(project).read_text() == before


def test_a_damaged_memory_is_named_and_written_anew(project: Project) -> None:
    project.perfci(*RUN)
    for damage in ("{", "[]", '{"schema": "perfci.remembered/2", "names": [3]}'):
        kept(project).write_text(damage)
        damaged = project.perfci(*RUN, "--last-failed").without_traceback()
        assert (damaged.code, "last_failed.json" in damaged.err) == (4, True)
    project.perfci(*RUN)
    assert "counting" in json.loads(kept(project).read_text())["failed"]


def test_shards_do_not_know_what_failed_here(project: Project) -> None:
    refused = project.perfci(*RUN, "--last-failed", "--shard", "1/2")
    assert (refused.code, "the other shards don't know" in refused.err) == (2, True)
