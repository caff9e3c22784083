"""The usual recipe: Welch's t on the single calls of one process a commit."""

from __future__ import annotations

import json
import statistics

from benchmarks.peers.finding import BENCHMARKS, Finding
from benchmarks.peers.tools.samples import change_of, usual_recipe
from benchmarks.peers.workplace import Runner

SETTINGS = {"200 calls": 200}


def measure(runner: Runner, setting: str, condition: str) -> list[Finding]:
    """Measure base, then head, and judge each benchmark by the recipe and with 5 % besides."""
    arguments = ("suites/loops.py", "each", "--warmup", "20", "--calls", str(SETTINGS[setting]))
    base, head = (
        json.loads(runner.python(*arguments, tree=runner.place.tree(branch)))
        for branch in ("base", condition)
    )
    findings = []
    for name in BENCHMARKS:
        change = change_of(statistics.fmean(base[name]), statistics.fmean(head[name]))
        alarm = usual_recipe(base[name], head[name])
        findings.append(Finding(name, "p < 0.05, d > 0.2", alarm, change))
        findings.append(Finding(name, "the same, +5 %", alarm and change > 0.05, change))
    return findings
