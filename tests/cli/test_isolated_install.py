"""perfci in one environment, the project's packages in another one without perfci."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from tests.builders.project import Project

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.usefixtures("single_round")]

BENCHMARK = """\
import perfci
import theirs

@perfci.benchmark
def work():
    return theirs.work
"""


@pytest.fixture
def elsewhere(project: Project) -> Project:
    """A project whose ``.venv`` alone has the package ``theirs``, and no library of perfci's."""
    venv.create(project.folder / ".venv", symlinks=True)
    (packages,) = (project.folder / ".venv").glob("lib/python*/site-packages")
    assert list(packages.iterdir()) == []
    (packages / "theirs.py").write_text("def work():\n    return sum(range(500))\n")
    project.write(".gitignore", ".venv\n")
    project.write("benchmarks/bench_work.py", BENCHMARK)
    project.commit("base")
    project.commit("head")
    return project


def configured(project: Project, python: str) -> None:
    with (project.folder / "pyproject.toml").open("a") as file:
        file.write(f'python = "{python}"\n')


def test_the_environment_in_the_configuration_measures_and_needs_nothing_of_perfci(
    elsewhere: Project,
) -> None:
    without = elsewhere.perfci("compare", "HEAD~1", "HEAD")
    assert "No module named 'theirs'" in " ".join(without.text.split())
    configured(elsewhere, ".venv/bin/python")
    report = elsewhere.report("compare", "HEAD~1", "HEAD")
    assert {row["case"] for row in report["results"]} == {"work"}
    assert report["verdict"]["status"] in {"pass", "inconclusive"}
    sub_folder = elsewhere.folder / "benchmarks"
    listed = Project.perfci(Inside(elsewhere, sub_folder), "list")
    assert listed.text.startswith("work"), listed.text


class Inside(Project):
    """The same project, from one of its folders."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.folder, self.cache = folder, project.cache


def test_an_option_goes_before_the_configuration_and_a_sides_own_before_that(
    elsewhere: Project,
) -> None:
    configured(elsewhere, "/nope")
    own = ".venv/bin/python"
    refused = elsewhere.perfci("compare", "HEAD~1", "HEAD")
    assert refused.code == 2
    assert "/nope is not an executable Python" in refused.err
    assert "`python` in the configuration" in refused.err
    both = elsewhere.perfci("compare", "HEAD~1", "HEAD", "--python", own)
    assert "work" in both.out, both.text
    assert both.code in {0, 1}, both.text
    one = elsewhere.perfci(
        "compare", "HEAD~1", "HEAD", "--python", own, "--base-python", sys.executable
    )
    assert "failed on base in import" in one.out, one.text
