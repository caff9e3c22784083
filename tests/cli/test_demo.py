"""The demo, a case of each model: of three models, what changed in two is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
QUICKER = "warmup = 0.2\nround_time = 0.1\nrounds = {}\nmax_rounds = {}\n"
"""What is looked at is what the demo finds, and not by how much exactly."""


def demo(folder: Path, pattern: str, *rounds: int) -> tuple[dict[str, Any], str]:
    """Compare the cases of ``pattern`` in the least and most ``rounds``.

    Return the report, and what the demo says against it: it expects a regression.
    """
    configuration = (ROOT / "examples/demo/base/pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        configuration + QUICKER.format(*rounds), encoding="utf-8"
    )
    kept = {k: v for k, v in os.environ.items() if k not in {"GITHUB_TOKEN", "GH_TOKEN"}}
    done = subprocess.run(
        [  # a budget that ends before pytest's time: it then says what was seen
            *(sys.executable, str(ROOT / "examples" / "demo.py"), str(folder / "out")),
            *("--budget", "8m", "-k", pattern, "--set", "why=false"),
            *("--config", str(folder / "pyproject.toml")),
        ],
        env={**kept, "PERFCI_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    report = json.loads((folder / "out" / "report.json").read_text())
    return report, done.stderr if done.returncode else ""


def gating(report: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Return the status of each gating row."""
    rows = (row for row in report["results"] if row["gate"] == "fail")
    return {(row["case"], row["metric"]): row["status"] for row in rows}


@pytest.mark.torch
@pytest.mark.timeout(590)
def test_the_demos_slower_model_is_seen_and_the_untouched_is_not_blamed(tmp_path: Path) -> None:
    """Beside other tests a round may be so disturbed that the verdict is left open."""
    report, against = demo(tmp_path, "batch=1", 5, 20)
    statuses = gating(report)
    rows = {(row["case"], row["metric"]): row for row in report["results"]}
    slower = rows["attention[batch=1]", "latency_p50"]
    assert slower["ratio"] > 1.0
    regressed = {key for key, it in statuses.items() if it == "regressed"}
    verdict = "fail" if regressed else "inconclusive"
    assert report["verdict"]["status"] == verdict
    assert ("1 (a regression) was expected" in against) == (verdict == "inconclusive")
    assert {case for case, _ in regressed} <= {"attention[batch=1]"}
    assert statuses["mixer[batch=1]", "cold_start"] == "unchanged"


@pytest.mark.compile
@pytest.mark.timeout(590)
def test_the_demo_fails_for_the_broken_graph_and_says_where(tmp_path: Path) -> None:
    """Three rounds compile cold once, and from the cache twice; the count needs no more."""
    report, against = demo(tmp_path, "gate", 3, 3)
    assert not against
    assert gating(report)["gate[mode=default]", "graph_breaks"] == "regressed"
    assert report["verdict"]["status"] == "fail"
    rows = {row["metric"]: row for row in report["results"]}
    cold, cached = rows["compile_time"], rows["compile_time_cached"]
    for side in ("base", "head"):
        assert cold[side]["center"] > 2 * cached[side]["center"] > 0
        assert cold[side]["workers"] <= 3  # no more are worth the time
    out = tmp_path / "out"
    assert "zoo/gate.py:15" in (out / "comment.md").read_text()
    names = {path.name for path in out.iterdir()}
    assert names >= {"comment.md", "report.json", "junit.xml", "logs"}
    assert (out / "logs" / "session.log").exists()
