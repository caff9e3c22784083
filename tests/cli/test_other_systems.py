"""Reading and rendering work on macOS and Windows. Measuring reports that it can't."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from perfci.report.exporters.json import render as render_json
from tests.forges.github.conftest import HEAD, report_of
from tests.forges.github.server import REPOSITORY, TOKEN, FakeGitHub, Pull

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "tests" / "data" / "golden" / "report.json"
RESULTS = ROOT / "tests" / "data" / "foreign" / "asv-results"

REPORTING = (
    ("report", REPORT, "--format", "html", "-o", "report.html"),
    ("history", "import", RESULTS, "--history", "history.sqlite"),
    ("trend", "--history", "history.sqlite", "--html", "site"),
    ("comment", "own.json", "--pull", 7, "--no-check"),
    ("merge", REPORT, "--json", "joined.json"),
)
"""Commands of one process: the imports take most of its time."""


def perfci(
    system: str, folder: Path, *arguments: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.cli.other_system", system, *map(str, arguments)],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_all_that_does_not_measure_works(system: str, tmp_path: Path) -> None:
    words = [word for command in REPORTING for word in ("+", *command)]
    with closing(FakeGitHub()) as github:
        github.pulls[7] = Pull(7, HEAD)
        (tmp_path / "own.json").write_text(render_json(report_of(HEAD)), encoding="utf-8")
        done = perfci(
            *(system, tmp_path, *words[1:]),
            GITHUB_TOKEN=TOKEN,
            GITHUB_API_URL=github.url,
            GITHUB_REPOSITORY=REPOSITORY,
            NO_PROXY="127.0.0.1",
        )
        comments = [comment["body"] for comment in github.comments]
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("perfci: fail — "), done.stderr
    assert "Warning" not in done.stderr
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "site" / "index.html").is_file()
    assert f"head={HEAD}" in comments[0]
    assert json.loads((tmp_path / "joined.json").read_text())["verdict"]["status"] == "fail"


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_measuring_is_refused_in_a_sentence(system: str, tmp_path: Path) -> None:
    refused = perfci(system, tmp_path, "compare", "main", "HEAD")
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        "perfci: `perfci compare` needs Linux: perfci measures nowhere else",
        "These work here: comment, history, merge, report, trend.",
        "[linux-only]",
    ]
