"""``[[tool.perfci.accept]]``: shown, recorded with its author, and never a fork's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import QUICK, Project, rows
from tests.builders.simulated import Simulated

SETTINGS = QUICK
LINE = """
[[tool.perfci.accept]]
case = "counting"
metric = "latency_p50"
because = "counts | `more`"
by = "Ada"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", Simulated())
    project.write("pyproject.toml", SETTINGS)
    project.counting(1000)
    project.commit("base")
    return project


def accepting(project: Project, line: str = LINE) -> None:
    """Commit a slower head that accepts it."""
    project.write("pyproject.toml", SETTINGS + line)
    project.counting(1300)
    project.commit("slower")


def compared(project: Project, code: int, **environment: str) -> tuple[dict[str, Any], str]:
    out = project.folder.parent / "report.json"
    done = project.perfci(
        "compare", "HEAD~1", "HEAD", "--json", str(out), "--markdown", "-", **environment
    )
    assert done.code == code, done.text
    return json.loads(out.read_text()), done.text


def test_it_is_shown_with_its_author_and_the_size_of_the_change(project: Project) -> None:
    accepting(project)
    report, text = compared(project, 0)
    row = rows(report, "counting")["latency_p50"]
    assert row["status"] == "regressed"
    said = {"because": "counts | `more`", "by": "Ada", "up_to": None, "until": ""}
    assert row["accepted"] == said
    assert report["verdict"]["reasons"][0].startswith("accepted by Ada: counting: latency_p50 +")
    assert "1 accepted regression" in text
    assert "accepted by Ada: counts &#124; <code>more</code>" in text
    shown = project.perfci("report", str(project.folder.parent / "report.json"))
    assert "accepted   latency_p50" in shown.out
    assert "accepted by Ada: counts | more" in " ".join(shown.out.split())


def test_a_line_that_base_has_needs_a_bound(project: Project) -> None:
    project.write("pyproject.toml", SETTINGS + LINE)
    project.commit("accept in advance")
    accepting(project)
    report, _ = compared(project, 1)
    assert "without `up_to` or `until`" in rows(report, "counting")["latency_p50"]["warnings"][0]


@pytest.mark.parametrize(("source", "code"), [("octo/models", 0), ("stranger/models", 1)])
def test_a_forks_author_cannot_accept(
    project: Project, tmp_path: Path, source: str, code: int
) -> None:
    accepting(project)
    owner = {"login": "octo"}
    head = {"sha": "a" * 40, "repo": {"full_name": source, "owner": owner}}
    event = tmp_path / "event.json"
    event.write_text(
        json.dumps(
            {
                "pull_request": {"number": 7, "head": head},
                "repository": {"full_name": "Octo/Models", "owner": owner},
            }
        )
    )
    report, _ = compared(project, code, GITHUB_EVENT_PATH=str(event))
    assert (rows(report, "counting")["latency_p50"]["accepted"] is None) == (code == 1)
