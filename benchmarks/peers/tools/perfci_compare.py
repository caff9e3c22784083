"""perfci itself: ``perfci compare base head``."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.peers.finding import BENCHMARKS, Finding
from benchmarks.peers.tools.samples import change_of
from benchmarks.peers.workplace import Runner, ToolFailed

SETTINGS: dict[str, float | None] = {"defaults": None, "threshold 2 %": 0.02, "threshold 1 %": 0.01}

_SIGNIFICANT = {"below-threshold", "small-effect"}
"""Codes of findings: significant, and no regression for another reason."""


def measure(runner: Runner, setting: str, condition: str) -> list[Finding]:
    """Return what fails the gate, and what is called significant at all."""
    report = runner.folder / "report.json"
    command = ["-m", "perfci", "compare", "base", condition, "--quiet", "--json", str(report)]
    # one condition is base itself, and measured all the same
    command += ["--allow-same-commit", "--all"]
    threshold = SETTINGS[setting]
    if threshold is not None:
        configuration = runner.folder / "perfci.toml"
        configuration.write_text(f"[metrics.latency_p50]\nthreshold = {threshold}\n")
        command += ["--config", str(configuration)]
    runner.python(*command, cwd=runner.place.repository, accepted=(0, 1, 3))
    return judge(json.loads(report.read_text(encoding="utf-8")))


def judge(report: dict[str, Any]) -> list[Finding]:
    """Return two findings a benchmark: the gate, and significance whatever the threshold."""
    if report["failures"]:
        raise ToolFailed(f"perfci: {report['failures']}")
    findings = []
    for name in BENCHMARKS:
        rows = [row for row in report["results"] if row["case"] == name]
        latency = next((row for row in rows if row["metric"] == "latency_p50"), None)
        if latency is None or latency["ratio"] is None:
            raise ToolFailed(f"perfci has no latency of {name}")
        change = change_of(1.0, latency["ratio"])
        elsewhere = tuple(
            row["metric"]
            for row in rows
            if row["metric"] != "latency_p50"
            and row["gate"] == "fail"
            and row["status"] == "regressed"
        )
        regressed = latency["status"] == "regressed"
        findings.append(Finding(name, "regressed", regressed, change, elsewhere))
        noticed = any(one["code"] in _SIGNIFICANT for one in latency["findings"])
        seen = regressed or (noticed and change > 0.0)
        findings.append(Finding(name, "significant, any size", seen, change))
    return findings
