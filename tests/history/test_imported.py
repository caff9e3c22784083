"""A folder of another tool's results: what its first report says."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from tests.builders.in_process import in_process

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
