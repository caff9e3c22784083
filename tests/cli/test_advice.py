"""Advice of commands: the right option, the next step, and no line about nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.builders.project import Project, rows


@pytest.fixture
def small(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    return project


def test_init_names_the_commit_before_the_command_that_needs_one(project: Project) -> None:
    said = project.perfci("init").out
    assert said.index("git add") < said.index("perfci list")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "as init says")
    assert project.perfci("list").code != 2


def test_listing_says_nothing_besides_its_lines(small: Project) -> None:
    done = small.perfci("list")
    assert done.err == ""
    assert "counting" in done.out


def test_sweeping_is_told_only_where_something_was_swept(small: Project) -> None:
    assert "earlier run" not in small.perfci("run", "-k", "steady").err
    left = next(small.cache.glob("*/trees")) / "perfci-left"
    left.mkdir()
    assert "removed 1 folder that an earlier run left" in small.perfci("run", "-k", "steady").err
    assert not left.exists()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("compare", "HEAD"), "--base-python"),
        (("compare", "HEAD"), "--head-python"),
        (("doctor",), "--python"),
        (("run",), "--python"),
    ],
)
def test_a_python_that_is_none_is_told_with_the_option_that_named_it(
    small: Project, command: tuple[str, ...], option: str
) -> None:
    done = small.perfci(*command, option, "/nope")
    assert done.code == 2
    assert f": {option} .venv/bin/python" in done.err


def test_a_file_refused_before_measuring_promises_no_numbers(small: Project) -> None:
    done = small.perfci("run", "--json", "/proc/x")
    assert done.code == 4
    assert "Choose another path" in done.err
    assert "was measured" not in done.err


def test_a_report_goes_into_a_folder_that_is_made_for_it(small: Project, tmp_path: Path) -> None:
    kept = tmp_path / "new" / "run.json"
    small.perfci("run", "-k", "steady", "--json", str(kept))
    out = tmp_path / "newer" / "comment.md"
    done = small.perfci("report", str(kept), "--format", "markdown", "-o", str(out))
    assert done.code == 0, done.text
    assert out.read_text().startswith("<!-- perfci")


def test_listing_what_selects_nothing_is_a_usage_error(small: Project) -> None:
    done = small.perfci("list", "-k", "nope").without_traceback()
    assert done.code == 2
    assert "selects no case" in done.err
    assert "Did you mean `steady`?" in small.perfci("list", "-k", "stedy").err


def test_cases_are_listed_as_json_for_scripts(small: Project) -> None:
    listed = json.loads(small.perfci("list", "--json", "-k", "steady").out)
    (case,) = listed["cases"]
    assert (case["id"], case["tags"], case["skip"], listed["failures"]) == ("steady", [], None, [])
    assert case["file"].endswith(".py")


def test_latency_is_asked_about_as_the_median(small: Project) -> None:
    small.write("perfci.toml", '[metrics.latency]\nthreshold = "5%"\n')
    assert "Did you mean `latency_p50`?" in small.perfci("list", "--config", "perfci.toml").err


def test_a_skip_reason_stays_on_its_line(small: Project) -> None:
    small.write(
        "benchmarks/bench_more.py",
        "import perfci\n\n@perfci.benchmark(skip='not\\ntoday')\ndef more():\n    return int\n",
    )
    assert "(skipped: not today)" in small.perfci("list", "-k", "more").out


@pytest.mark.processes
def test_git_that_is_not_there_is_an_error_of_two_lines(small: Project, tmp_path: Path) -> None:
    done = small.process("list", PATH=str(tmp_path)).without_traceback()
    assert done.code == 4
    assert done.err.splitlines() == [
        "perfci: the command git was not found",
        "Install git 2.31 or newer and see that it is on PATH.",
        "[no-git]",
    ]


def test_exit_codes_stand_apart_from_the_example(project: Project) -> None:
    lines = project.perfci("compare", "--help").out.splitlines()
    assert any(line.strip().startswith("Exit codes:") for line in lines)


def test_more_cores_than_there_are_is_refused_before_anything_is_built(small: Project) -> None:
    with (small.folder / "pyproject.toml").open("a") as file:
        file.write("cores = 4097\nbuild = ['touch built']\n")
    done = small.perfci("run", "-k", "steady").without_traceback()
    assert done.code == 2
    assert f"`cores` is 4097, and perfci may use {len(os.sched_getaffinity(0))} here" in done.err
    assert not list(small.cache.glob("*/builds/*"))


def test_what_base_cannot_import_is_one_failed_row_a_case(project: Project) -> None:
    project.write("lib.py", "raise RuntimeError('mended later')\n")
    project.write("benchmarks/bench_two.py", TWO)
    base = project.commit("broken library")
    project.write("lib.py", "work = int\n")
    project.commit("mended library")
    path = project.folder.parent / "report.json"
    done = project.perfci("compare", base, "HEAD", "--json", str(path))
    report = json.loads(path.read_text())
    assert {row["case"]: row["status"] for row in report["results"]} == {
        "one": "failed",
        "two": "failed",
    }
    assert report["verdict"]["status"] == "inconclusive"
    assert {failure["case"] for failure in report["failures"]} == {"one", "two"}
    assert len(rows(report, "one")) == 1
    assert "one, two\n  failed on base in import" in done.out  # one text for both
    assert done.out.count("mended later") == 1, done.out


TWO = """\
import perfci
from lib import work

@perfci.benchmark
def one():
    return work

@perfci.benchmark
def two():
    return work
"""
