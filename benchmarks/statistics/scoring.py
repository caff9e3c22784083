"""Scores: what a decision path said of many simulated reports, counted; and shares of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from scipy import special

from benchmarks.statistics.paths import Outcome
from perfci.record.report import Comparison

CONFIDENCE = 0.95


@dataclass(slots=True)
class Score:
    """Counts over reports and their comparisons; ``change`` is head ÷ base - 1, the truth."""

    model: str
    path: str
    change: float
    threshold: float
    reports: int = 0
    failed: int = 0
    inconclusive: int = 0
    comparisons: int = 0
    rounds: int = 0
    set_aside: int = 0
    intervals: int = 0
    held: int = 0
    significant: int = 0
    regressed: int = 0
    unchanged: int = 0

    def add(self, outcome: Outcome, alpha: float) -> None:
        self.reports += 1
        self.failed += outcome.verdict == "fail"
        self.inconclusive += outcome.verdict == "inconclusive"
        self.rounds += sum(outcome.rounds)
        for row in outcome.rows:
            self._add(row, alpha)

    def _add(self, row: Comparison, alpha: float) -> None:
        self.comparisons += 1
        self.set_aside += row.rounds_set_aside
        self.significant += row.p_adjusted is not None and row.p_adjusted < alpha
        self.regressed += row.status == "regressed"
        self.unchanged += row.status == "unchanged"
        if row.ratio_lo is not None and row.ratio_hi is not None:
            self.intervals += 1
            self.held += row.ratio_lo <= 1.0 + self.change <= row.ratio_hi

    def plain(self) -> dict[str, object]:
        return asdict(self)


def binomial_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Clopper & Pearson 1934, Biometrika 26:404-413)."""
    tail = (1.0 - CONFIDENCE) / 2.0
    lo = 0.0 if count == 0 else float(special.betaincinv(count, total - count + 1, tail))
    hi = 1.0 if count == total else float(special.betaincinv(count + 1, total - count, 1 - tail))
    return lo, hi


def percent(count: int, total: int, digits: int = 1) -> str:
    return "–" if not total else f"{100.0 * count / total:.{digits}f}"


def percent_with_interval(count: int, total: int) -> str:
    if not total:
        return "–"
    lo, hi = binomial_interval(count, total)
    return f"{100 * count / total:.2f} ({100 * lo:.2f}–{100 * hi:.2f})"


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    return "\n".join(_lines(header, rows))


def _lines(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(_text(cell) for cell in row) + " |"


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return "–" if math.isnan(cell) else f"{cell:.1f}"
    return str(cell)
