"""From measurements to the figures of the table, purely."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.peers.finding import CONDITIONS, Measurement

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
        """Return Wilson's 95 % score interval.

        Notes
        -----
        E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference",
        JASA 22 (1927). It takes answers as independent; those of one run share its luck, so
        that the true interval is wider.
        """
        if not self.of:
            return 0.0, 1.0
        z = statistics.NormalDist().inv_cdf(0.975)
        centre = (self.hits + z * z / 2.0) / (self.of + z * z)
        spread = math.sqrt(self.hits * (self.of - self.hits) / self.of + z * z / 4.0)
        half = z * spread / (self.of + z * z)
        return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True, slots=True)
class Score:
    """One tool, setting and rule: ``rates`` of alarms by condition, over benchmarks and runs."""

    tool: str
    setting: str
    rule: str
    rates: dict[str, Rate]
    suites: Rate
    failures: Rate
    wall: float


def scores(measurements: Iterable[Measurement]) -> list[Score]:
    """Score each rule; what failed is counted as failed, never as an answer.

    ``suites`` are the runs on identical commits with at least one false alarm. There an alarm on
    anything (perfci gates memory and start-up too) is false; a detection is one of latency.
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
            suites = _suites(answered, rule)
            found.append(Score(tool, setting, rule, rates, suites, failures, wall))
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


def _suites(measurements: Sequence[Measurement], rule: str) -> Rate:
    same = [m for m in measurements if m.condition == "same"]
    alarmed = [
        any((f.alarm or f.elsewhere) and f.rule == rule for f in measurement.findings)
        for measurement in same
    ]
    return Rate(sum(alarmed), len(alarmed))
