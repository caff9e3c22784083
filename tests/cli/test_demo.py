"""The demo, a case of each model: its verdict is fail for exactly the two changed models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
QUICKER = "warmup = 0.2\nround_time = 0.1\nrounds = 5\nmax_rounds = 10\n"
"""What is looked at is what the demo finds, and not by how much exactly."""


@pytest.mark.compile
@pytest.mark.timeout(590)
def test_the_demo_fails_for_the_two_changed_models_and_says_why(tmp_path: Path) -> None:
    configuration = (ROOT / "examples/demo/base/pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(configuration + QUICKER, encoding="utf-8")
    kept = {k: v for k, v in os.environ.items() if k not in {"GITHUB_TOKEN", "GH_TOKEN"}}
    done = subprocess.run(
        [  # a budget that ends before pytest's time: it then says what was seen
            *(sys.executable, str(ROOT / "examples" / "demo.py"), str(tmp_path / "out")),
            *("--budget", "8m"),
            *("-k", "gate or batch=1", "--no-why"),  # a case of each model
            *("--config", str(tmp_path / "pyproject.toml")),
        ],
        env={**kept, "PERFCI_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    gating = [row for row in report["results"] if row["gate"] == "fail"]
    regressed = {row["case"].partition("[")[0] for row in gating if row["status"] == "regressed"}
    assert regressed == {"attention", "gate"}
    assert report["verdict"]["status"] == "fail"
    mixer = [
        row["status"]
        for row in gating
        if row["case"].startswith("mixer") and row["metric"] == "latency_p50"
    ]
    assert mixer == ["unchanged"]
    (broken,) = (row for row in gating if row["metric"] == "graph_breaks" and row["difference"])
    assert broken["case"] == "gate[mode=default]"
    compiling = {
        row["metric"]: row for row in report["results"] if row["case"] == "gate[mode=default]"
    }
    cold, cached = compiling["compile_time"], compiling["compile_time_cached"]
    for side in ("base", "head"):
        assert cold[side]["center"] > 2 * cached[side]["center"] > 0
        assert cold[side]["workers"] == 1 < cached[side]["workers"]  # no more are worth the time
    comment = (tmp_path / "out" / "comment.md").read_text()
    assert "zoo/gate.py:15" in comment
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "comment.md",
        "report.json",
        "junit.xml",
        "logs",
    }
    assert (tmp_path / "out" / "logs" / "session.log").exists()
