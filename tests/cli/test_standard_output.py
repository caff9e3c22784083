"""``-`` as an output: standard output has that alone, and no file of that name is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfci.history.store import open_history
from tests.builders.project import Project
from tests.builders.recorded import recorded


@pytest.fixture
def slowed(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    project.counting(30_000)
    project.commit("slower")
    return project


def test_a_report_is_all_that_standard_output_has(slowed: Project, tmp_path: Path) -> None:
    done = slowed.perfci("compare", "main~1", "main", "--json", "-").without_traceback()
    assert done.code == 1
    assert json.loads(done.out)["schema"] == "perfci.report/1"
    assert "counting" in done.err
    assert "regressed" in done.err
    kept = tmp_path / "report.json"
    kept.write_text(done.out)
    shown = slowed.perfci("report", str(kept), "--format", "markdown", "-o", "-")
    assert "counting" in shown.out
    merged = slowed.perfci("merge", str(kept), "--markdown", "-", "--json", str(kept))
    assert merged.out.startswith("<!--"), merged.text
    assert not (slowed.folder / "-").exists()


def test_of_every_command_that_measures_it_is_all_that_standard_output_has(
    slowed: Project,
) -> None:
    assert slowed.perfci("baseline", "update", "main~1").code == 0
    asked = {
        ("run", "main"): "verdict",
        ("check", "main"): "verdict",
        ("bisect", "main~1..main", "--budget", "20s", "-k", "counting"): "comparisons",
    }
    for command, key in asked.items():
        done = slowed.perfci(*command, "--json", "-").without_traceback()
        assert key in json.loads(done.out), done.text
        assert "counting" in done.err


def test_two_outputs_cannot_both_be_standard_output(slowed: Project) -> None:
    done = slowed.perfci("compare", "main~1", "main", "--json", "-", "--markdown", "-")
    assert (done.code, "[same-output]" in done.err) == (2, True), done.text


@pytest.mark.parametrize(
    ("option", "beginning"),
    [("--markdown", "#"), ("--json", "{"), ("--openmetrics", "# ")],
)
def test_a_trend_is_all_that_standard_output_has(
    slowed: Project, tmp_path: Path, option: str, beginning: str
) -> None:
    place = tmp_path / "history.sqlite"
    with open_history(str(place)) as history:
        history.record([recorded(number) for number in range(1, 8)])
    done = slowed.perfci("trend", "--history", str(place), option, "-").without_traceback()
    assert done.code == 0, done.text
    assert done.out.startswith(beginning), done.text
    assert "in 1 environment" not in done.out.partition("\n")[0]
    assert "in 1 environment" in done.err
    assert not (slowed.folder / "-").exists()
