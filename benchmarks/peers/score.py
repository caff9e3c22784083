"""The tables of docs/results/peers.md, from the raw results.

python -m benchmarks.peers.score [FILE.jsonl …]
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.finding import CONDITIONS, Measurement, machines, read
from benchmarks.statistics.scoring import markdown, wilson_interval

RESULTS = Path(__file__).parent / "results"
COLUMNS = (
    "tool",
    "setting",
    "rule",
    "false alarms",
    "2 % found",
    "5 % found",
    "wall time",
    "failed",
)
# The rule that a user of each tool would look at first: its own, with its own threshold.
OWN_RULES = {
    "by hand": "mean +5 %",
    "Welch on raw calls": "p < 0.05, d > 0.2",
    "torch.utils.benchmark": "significant figures",
    "pytest-benchmark": "median:5%",
    "asv": "factor 1.1",
    "pyperf": "significant",
    "perfci": "regressed",
}


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of how many."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """Return the share, NaN of none."""
        return self.hits / self.of if self.of else math.nan

    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % interval. Answers of one run aren't independent, as it assumes."""
        return wilson_interval(self.hits, self.of) if self.of else (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Score:
    """One tool, setting and rule: ``rates`` of alarms by condition, over benchmarks and runs."""

    tool: str
    setting: str
    rule: str
    rates: dict[str, Rate]
    failures: Rate
    wall: float


def scores(measurements: Iterable[Measurement]) -> list[Score]:
    """Score each rule; what failed is counted as failed, never as an answer.

    On identical commits an alarm on anything (perfci gates memory and start-up too) is false; a
    detection is one of latency.
    """
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for measurement in measurements:
        groups.setdefault((measurement.tool, measurement.setting), []).append(measurement)
    found = []
    for (tool, setting), group in groups.items():
        answered = [m for m in group if not m.failure]
        rules = dict.fromkeys(finding.rule for m in answered for finding in m.findings)
        wall = statistics.median(m.seconds for m in answered) if answered else math.nan
        failures = Rate(len(group) - len(answered), len(group))
        for rule in rules or ("",):
            rates = {name: _rate(answered, rule, name) for name in CONDITIONS}
            found.append(Score(tool, setting, rule, rates, failures, wall))
    return found


def _rate(measurements: Sequence[Measurement], rule: str, condition: str) -> Rate:
    answers = [
        finding.alarm or (condition == "same" and bool(finding.elsewhere))
        for measurement in measurements
        if measurement.condition == condition
        for finding in measurement.findings
        if finding.rule == rule
    ]
    return Rate(sum(answers), len(answers))


def main() -> None:
    """Print where it was measured, and each tool by its own rule."""
    files = [Path(name) for name in sys.argv[1:]] or sorted(RESULTS.glob("run*.jsonl"))
    measured = scores(read(files))
    own = [score for score in measured if OWN_RULES[score.tool] == score.rule]
    tools = list(OWN_RULES)
    own.sort(key=lambda score: (tools.index(score.tool), score.setting))
    print(_place(machines(files)), table(own), sep="\n\n")


def table(found: Iterable[Score]) -> str:
    """Return a row for each score."""
    rows = []
    for score in found:
        same, *slower = (_rate_text(score.rates[condition]) for condition in CONDITIONS)
        failed = f"{score.failures.hits} of {score.failures.of}" if score.failures.hits else "–"
        rates = (same, *slower)
        rows.append((score.tool, score.setting, score.rule, *rates, _time(score.wall), failed))
    return markdown(COLUMNS, rows)


def _place(about: Sequence[dict[str, Any]]) -> str:
    last = about[-1]
    versions = ", ".join(f"{name} {number}" for name, number in last["packages"].items())
    days = ", ".join(sorted({str(one["at"])[:10] for one in about}))
    return (
        f"Measured {days} on {last['machine']} with {last['cores']} cores, "
        f"Python {last['python']}, {versions}."
    )


def _rate_text(rate: Rate) -> str:
    if not rate.of:
        return "–"
    low, high = rate.interval()
    return f"{rate.share:.0%} ({rate.hits}/{rate.of}; {low:.0%}–{high:.0%})"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


if __name__ == "__main__":
    main()
