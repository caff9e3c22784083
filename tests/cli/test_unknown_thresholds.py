"""Thresholds of a missing benchmark have no effect, and are reported."""

from __future__ import annotations

import pytest

from tests.builders.project import Project

NOTE = "The thresholds of `steadi`: no benchmark has that name. Did you mean `steady`?"


@pytest.fixture
def mistyped(project: Project) -> Project:
    project.counting(1000)
    with (project.folder / "pyproject.toml").open("a") as file:
        for name in ("steadi", "counting"):
            file.write(f"[tool.perfci.thresholds.{name}]\nlatency_p50 = '900%'\n")
    project.commit("base")
    return project


def test_a_list_names_the_nearest_benchmark(mistyped: Project) -> None:
    done = mistyped.perfci("list").without_traceback()
    assert done.code == 0
    assert NOTE in done.err
    assert "steadi" not in done.out


@pytest.mark.parametrize("command", [("run",), ("compare", "HEAD", "--same"), ("check",)])
def test_a_report_names_it_whatever_was_selected(
    mistyped: Project, command: tuple[str, ...]
) -> None:
    if command == ("check",):
        assert mistyped.perfci("baseline", "update", "-k", "steady", "--rounds", "2").code == 0
    report = mistyped.report(*command, "-k", "steady")
    assert [note for note in report["notes"] if "thresholds" in note] == [NOTE]


def test_a_file_that_cannot_be_imported_may_have_the_benchmark(mistyped: Project) -> None:
    mistyped.write("benchmarks/bench_broken.py", "import nowhere\n")
    done = mistyped.perfci("list").without_traceback()
    assert done.code == 3
    assert "thresholds" not in done.err
