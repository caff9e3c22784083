"""A folder of another tool's results: how far its import is, and what its first report says."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.in_process import in_process
from tests.builders.project import Project

pytestmark = pytest.mark.processes

DAY_MS = 86_400_000
BEGIN_MS = 1_700_000_000_000
NIGHTS = 90


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return asv's results of 90 nights: a benchmark became slower in night 30, another in 80."""
    noise = random.Random(3)
    folder = tmp_path / "results"
    machine = folder / "machine"
    machine.mkdir(parents=True)
    for night in range(NIGHTS):
        moment = BEGIN_MS + night * DAY_MS
        results = {
            f"suite.time_{name}": [
                [noise.gauss(1.0, 0.01) * (1.3 if night >= at else 1.0)], [], "1", moment
            ]
            for name, at in (("old", 30), ("new", 80))
        }  # fmt: skip
        content = {
            "commit_hash": f"{night + 1:040x}",
            "env_name": "virtualenv-py3.11",
            "date": moment,
            "params": {"machine": "machine"},
            "python": "3.11",
            "result_columns": ["result", "params", "version", "started_at"],
            "results": results,
            "version": 2,
        }
        (machine / f"{night:08x}-virtualenv-py3.11.json").write_text(json.dumps(content))
    return folder


def test_in_a_first_report_only_the_last_14_days_of_an_imported_history_are_new(
    folder: Path, tmp_path: Path
) -> None:
    def perfci(*arguments: str) -> None:
        done = in_process((*arguments, "--history", "history.sqlite"), tmp_path, os.environ)
        assert done.code == 0, done.text

    def statuses() -> dict[str, str]:
        perfci("trend", "--json", "trend.json")
        report = json.loads((tmp_path / "trend.json").read_bytes())
        return {one["case"]: one["status"] for one in report["changes"]}

    perfci("history", "import", str(folder))
    assert statuses() == {"suite.time_old": "known", "suite.time_new": "new"}
    assert statuses() == {"suite.time_old": "known", "suite.time_new": "known"}


def test_a_log_says_how_far_an_import_is(project: Project, folder: Path, tmp_path: Path) -> None:
    place = ("--history", str(tmp_path / "history.sqlite"))
    done = project.perfci("history", "import", str(folder), *place, "--log-format", "json")
    events = [json.loads(line) for line in done.err.splitlines()]
    told = [event for event in events if event["event"] == "progress"]
    assert [(one["file"], one["runs"], one["files"], one["of"]) for one in told] == [
        (str(folder), 1, 1, NIGHTS)
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such terminal")
def test_a_terminal_shows_how_far_an_import_is_and_nothing_once_it_is_done(
    project: Project, folder: Path, tmp_path: Path
) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = (sys.executable, "-m", "perfci", "history", "import", str(folder))
    place = ("--history", str(tmp_path / "history.sqlite"))
    with subprocess.Popen(
        [*command, *place], cwd=project.folder, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        out, _ = process.communicate()
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert process.returncode == 0
    assert b"90 new runs" in out
    assert f"1 of {NIGHTS} files, 1 run" in shown
    assert "files" not in shown.rpartition("\x1b[2K")[2]
