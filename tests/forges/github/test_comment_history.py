"""``perfci comment --history``: what moved, beside its newest recorded values."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from perfci.history.store import open_history
from perfci.model.run import Point
from perfci.report.exporters.json import render as render_json
from tests.builders.recorded import recorded
from tests.report.examples import rich_report


def test_the_comment_shows_what_moved_beside_its_history(tmp_path: Path) -> None:
    report = rich_report()
    moved = next(row for row in report.results if row.status == "regressed" and row.head.center)
    points = (Point(moved.case, moved.metric, moved.unit, moved.base.center),)
    place = tmp_path / "history.sqlite"
    earlier = (points[0]._replace(case=f"before_{moved.case}"),)
    with open_history(str(place)) as history:
        history.record([recorded(0, report.environment, points=earlier)])
        history.record([recorded(n, report.environment, points=points) for n in (1, 2)])
    (tmp_path / "perfci.toml").write_text(f'[aliases]\n"before_{moved.case}" = "{moved.case}"\n')
    (tmp_path / "report.json").write_text(render_json(report))
    (tmp_path / "push.json").write_text(json.dumps({"ref": "refs/heads/main"}))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "perfci", "comment", "report.json", "--event", "push.json"),
            *("--history", str(place)),
        ],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "perfci-comment.md").read_text()
    assert re.search("until now\N{NO-BREAK SPACE}?\\s*[▁▂▃▄▅▆▇█]{4} \\|", text)
