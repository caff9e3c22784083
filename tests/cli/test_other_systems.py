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
from tests.forges.github.server import TOKEN, FakeGitHub
from tests.forges.github.state import REPOSITORY, Pull

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "tests" / "data" / "golden" / "report.json"
RESULTS = ROOT / "tests" / "data" / "foreign" / "asv-results"

pytestmark = pytest.mark.parametrize("system", ["darwin", "win32"])


def perfci(
    system: str, folder: Path, *arguments: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.cli.other_system", system, *map(str, arguments)],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_report_is_rendered_and_joined(system: str, tmp_path: Path) -> None:
    shown = ("report", REPORT, "--format", "html")
    joined = perfci(system, tmp_path, *shown, "+", "merge", REPORT, "--json", "joined.json")
    assert joined.returncode == 1, joined.stderr
    assert joined.stderr.startswith("perfci: fail: "), "something before what merge says"
    assert joined.stdout.startswith("<!DOCTYPE html>")
    assert json.loads((tmp_path / "joined.json").read_text())["verdict"]["status"] == "fail"


def test_a_report_becomes_a_comment(system: str, tmp_path: Path) -> None:
    with closing(FakeGitHub()) as github:
        github.pulls[7] = Pull(7, HEAD)
        (tmp_path / "report.json").write_text(render_json(report_of(HEAD)), encoding="utf-8")
        done = perfci(
            *(system, tmp_path, "comment", "report.json", "--pull", 7, "--no-check"),
            GITHUB_TOKEN=TOKEN,
            GITHUB_API_URL=github.url,
            GITHUB_REPOSITORY=REPOSITORY,
            NO_PROXY="127.0.0.1",
        )
        assert done.returncode == 0, done.stderr
        assert f"head={HEAD}" in github.comments[0]["body"]


def test_a_history_is_imported_and_its_trend_shown(system: str, tmp_path: Path) -> None:
    kept = ("--history", "history.sqlite")
    imported = ("history", "import", RESULTS, *kept)
    shown = perfci(system, tmp_path, *imported, "+", "trend", *kept, "--html", "site")
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "site" / "index.html").is_file()


def test_measuring_is_refused_in_a_sentence(system: str, tmp_path: Path) -> None:
    refused = perfci(system, tmp_path, "compare", "main", "HEAD")
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        "perfci: `perfci compare` needs Linux: perfci measures nowhere else",
        "These work here: comment, completion, history, merge, report, trend.",
        "[linux-only]",
    ]
