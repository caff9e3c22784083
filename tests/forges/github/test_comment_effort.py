"""A stranger's report as large as one may be costs the commenting job 5 s of CPU at most."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfci.report.exporters.json import MOST_BYTES
from perfci.report.exporters.json import render as render_json
from tests.forges.github.conftest import HEAD, Comment, report_of

MOST_TIMES = 60
"""About 5 s where nothing else runs: 15,000 rows take 25 to 35 times ``plain_work``."""
ROWS = 15_000
ODD = "ünseen\u202e `x` <b> @all #1 ::error:: http://a.b/c "
Plain = dict[str, Any]


def plain_work() -> float:
    """Return the CPU time of a fixed amount of Python's work, the least of three tries."""

    def once() -> float:
        before = time.process_time()
        texts = [f"{number:.3g} {number!r}" for number in range(300_000)]
        json.loads(json.dumps(texts))
        return time.process_time() - before

    return min(once() for _ in range(3))


def of_status(*statuses: str) -> Callable[[Plain], None]:
    """Repeat the rows of these statuses until there are 15,000."""

    def grow(report: Plain) -> None:
        of_them = (one for one in report["results"] if one["status"] in statuses)
        rows = list({one["metric"]: one for one in of_them}.values())
        report["results"] = [
            {**rows[number % len(rows)], "case": f"case[n={number // len(rows)}]", "replay": ""}
            for number in range(ROWS)
        ]
        for name in ("failures", "explanations", "why", "modes", "shapes"):
            report[name] = []
        report["skipped"] = {}
        worst = "fail" if "regressed" in statuses else "inconclusive"
        report["verdict"] = {"status": worst, "reasons": [], "findings": []}

    return grow


def notes(report: Plain) -> None:
    """2 MB of notes and 12 MB of reasons for skipping: more of either is refused."""
    report["findings"] = []
    report["notes"] = [f"{number} {ODD * 50}"[:2_000] for number in range(1_000)]
    report["skipped"] = {f"skipped[n={number}]": (ODD * 30)[:900] for number in range(12_000)}


def failures(report: Plain) -> None:
    """15 MB of what failing cases printed."""
    (one,) = report["failures"]
    report["failures"] += [
        {**one, "case": f"failing[n={number}]", "message": ODD * 80, "log_tail": f"{ODD}\n" * 200}
        for number in range(999)
    ]


@pytest.mark.slow  # it compares times that it measured
@pytest.mark.parametrize(
    "grow",
    [
        pytest.param(of_status("regressed", "improved", "inconclusive"), id="moved"),
        pytest.param(of_status("unchanged"), id="steady"),
        pytest.param(notes, id="notes"),
        pytest.param(failures, id="failures"),
    ],
)
def test_a_report_as_large_as_one_may_be_is_posted_within_some_s_of_cpu(
    grow: Callable[[Plain], None], comment: Comment, tmp_path: Path
) -> None:
    plain = json.loads(render_json(report_of(HEAD)))
    grow(plain)
    path = tmp_path / "large.json"
    path.write_text(json.dumps(plain, ensure_ascii=False), encoding="utf-8")
    assert MOST_BYTES / 4 < path.stat().st_size < MOST_BYTES
    before = time.process_time()
    done = comment(path, "--page", tmp_path / "page.html")
    spent = time.process_time() - before
    assert done.code == 0, done.text[-500:]
    assert spent < MOST_TIMES * plain_work()
