"""Scores: what a decision path said of many simulated reports, counted; and shares of them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.statistics.paths import Outcome
from perfci.model.report import Comparison

SEED = 20
_NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution: every interval here is of 95 %."""


@dataclass(slots=True)
class Score:
    """Counts over reports and their comparisons; ``change`` is head ÷ base - 1, the truth.

    ``alarmed`` are reports with a comparison that is significant, of whatever size.
    """

    model: str
    path: str
    change: float
    threshold: float
    reports: int = 0
    failed: int = 0
    alarmed: int = 0
    inconclusive: int = 0
    comparisons: int = 0
    rounds: float = 0.0
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
        significant = self.significant
        for row in outcome.rows:
            self._add(row, alpha)
        self.alarmed += self.significant > significant

    def _add(self, row: Comparison, alpha: float) -> None:
        self.comparisons += 1
        self.significant += is_significant(row, alpha)
        self.regressed += row.status == "regressed"
        self.unchanged += row.status == "unchanged"
        if row.ratio_lo is not None and row.ratio_hi is not None:
            self.intervals += 1
            self.held += row.ratio_lo <= 1.0 + self.change <= row.ratio_hi

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def rng_of(*names: str) -> np.random.Generator:
    """Return the generator of what is so named: a part run alone gives the same figures."""
    return np.random.default_rng([SEED, *(zlib.crc32(name.encode()) for name in names)])


def is_significant(row: Comparison, alpha: float) -> bool:
    return row.p_adjusted is not None and row.p_adjusted < alpha


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927, JASA 22:209-212)."""
    share, square = count / total, _NORMAL**2 / total
    center = (share + square / 2.0) / (1.0 + square)
    half = math.sqrt(share * (1.0 - share) * square + square**2 / 4.0) / (1.0 + square)
    return max(0.0, center - half), min(1.0, center + half)


def largest_error(shares: Iterable[tuple[int, int]], digits: int = 1) -> str:
    """Say how large the largest standard error of ``shares`` (counts of totals) is."""
    found = [math.sqrt(count * (total - count) / total) / total for count, total in shares if total]
    return f"Standard errors: up to {100.0 * max(found, default=0.0):.{digits}f}."


def percent(count: int, total: int, digits: int = 1) -> str:
    return "–" if not total else f"{100.0 * count / total:.{digits}f}"


def percent_with_interval(count: int, total: int) -> str:
    if not total:
        return "–"
    lo, hi = wilson_interval(count, total)
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
