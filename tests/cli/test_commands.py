"""The smaller commands: each does what its help says."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.builders.project import Project


@pytest.fixture
def small(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    return project


def test_init_writes_what_list_then_finds(project: Project) -> None:
    (project.folder / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    project.commit("mine", **{"mine/__init__.py": ""})
    done = project.perfci("init")
    assert done.code == 0
    assert "Next:" in done.out
    assert "[project]" in (project.folder / "pyproject.toml").read_text()
    again = project.perfci("init")
    assert again.code == 0
    assert (project.folder / "pyproject.toml").read_text().count("[tool.perfci]") == 1


def test_list_shows_ids_places_tags_and_skips(small: Project) -> None:
    small.write(
        "benchmarks/bench_more.py",
        "import perfci\n\n@perfci.benchmark(n=[1, 2], tags=['quick'], skip='not today')\n"
        "def more(n):\n    return int\n",
    )
    out = small.perfci("list", "-k", "quick").out
    assert re.search(
        r"more\[n=1\]\s+benchmarks/bench_more.py:\d+  #quick  \(skipped: not today\)", out
    )
    assert "counting" not in out


def test_run_shows_one_sides_numbers(small: Project) -> None:
    report = small.report("run", "HEAD", "-k", "steady", code=0)
    assert report["base"] is None
    metrics = {row["metric"]: row for row in report["results"]}
    assert metrics["latency_p50"]["head"]["center"] > 0
    assert metrics["cold_start"]["head"]["workers"] == 5


def test_a_skipped_case_is_said_and_not_measured(small: Project) -> None:
    small.write(
        "benchmarks/bench_more.py",
        "import perfci\n\n@perfci.benchmark(skip='needs a dragon')\ndef more():\n    return int\n",
    )
    report = small.report("run", "-k", "more or steady")
    assert report["skipped"] == {"more": "needs a dragon"}
    assert "more" not in {row["case"] for row in report["results"]}


def test_every_format_can_be_rendered_again_from_the_json(small: Project, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    small.perfci(
        "compare", "HEAD", "HEAD", "--allow-same-commit", "-k", "steady", "--json", str(path)
    )
    markdown = small.perfci("report", str(path), "--format", "markdown")
    assert markdown.code == 0
    assert markdown.out.startswith("<!-- perfci")
    ET.fromstring(small.perfci("report", str(path), "--format", "junit").out)
    assert small.perfci("report", str(path), "--format", "json").out == path.read_text()
    page, text = tmp_path / "r.html", tmp_path / "r.txt"
    assert small.perfci("report", str(path), "-o", str(page)).code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")  # by the file's suffix
    small.perfci("report", str(path), "-o", str(text))
    assert "perfci: pass" in text.read_text()
    assert "steady" in small.perfci("report", str(path)).out


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"schema": "perfci.report/9"}'])
def test_a_damaged_report_is_an_error_that_names_it(project: Project, text: str) -> None:
    path = project.write("report.json", text)
    done = project.perfci("report", str(path)).without_traceback()
    assert done.code == 4
    assert "report.json" in done.err
