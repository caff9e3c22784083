"""Policy: thresholds, the margin around "no change", and what a status does.

Ratios are taken as logarithms, metrics that may be zero as differences: on either scale the margin
is the threshold to both sides of zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, NamedTuple

from perfci.metrics import METRICS
from perfci.model.case import Metric, Undecided
from perfci.model.measuring import DECIDING_ROUNDS, MOST_ROUNDS
from perfci.model.report import Comparison
from perfci.stats.evidence import look_confidence
from perfci.stats.t_tests import CONFIDENCE, t_quantile
from perfci.values import Chance, Text, about


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules by which a change counts as a regression. The first four fields are keys.

    After each of ``looks[0]`` to ``looks[1]`` rounds a session may stop: the intervals of pairs are
    corrected for that. ``metrics`` has metrics with the policy that is configured; the others keep
    their own defaults. ``thresholds`` are by benchmark and metric.

    A search sets the others. ``two_sided``: rounds also decide whether head is better or unchanged,
    which no verdict asks. The metric ``searched`` alone gates, with the threshold ``margin``.
    """

    strict: Annotated[bool, about("Exit with 3 when the verdict is inconclusive.")] = False
    allow_broken: Annotated[
        tuple[Text, ...],
        about(
            "Cases, benchmarks or files that may fail on both sides; `*` is any text. "
            "Other cases that do exit with 3.",
            ["encoder[mode=default]", "legacy_*"],
        ),
    ] = ()
    alpha: Annotated[Chance, about("Chance of a false alarm in a report.", "5%")] = 0.01
    cohens_d: Annotated[
        float,
        about(
            "`check` only: least effect size, unless the whole interval is beyond the threshold.",
            0.5,
            ge=0,
        ),
    ] = 0.2
    looks: tuple[int, int] = (DECIDING_ROUNDS, MOST_ROUNDS)
    two_sided: bool = False
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    searched: str = ""
    margin: float = 0.0

    def of(self, metric: Metric) -> Metric:
        """Return ``metric`` with its policy for all cases."""
        metric = self.metrics.get(metric.name, metric)
        if not self.searched:
            return metric
        if metric.name != self.searched:
            return replace(metric, gate="info")
        searched = replace(metric, gate="fail", undecided="inconclusive", share=0.0)
        return with_threshold(searched, self.margin)

    def for_case(
        self, metric: Metric, case: str, own: Mapping[str, float] = MappingProxyType({})
    ) -> Metric:
        """Return ``metric`` with its policy for ``case``.

        ``own`` are thresholds of the benchmark itself, by metric. They win.
        """
        configured = self.of(metric)
        given = self.thresholds.get(case.partition("[")[0], {})
        threshold = own.get(metric.name, given.get(metric.name))
        if threshold is None or self.searched == metric.name:
            return configured
        return with_threshold(configured, threshold)

    def confidence(self, metric: Metric) -> float:
        """Return the confidence of the interval of ``metric``'s pairs at one look.

        It is 95 % if the number of rounds is fixed: for metrics with a rounds setting of their own.
        """
        if metric.rounds_setting != "rounds":
            return CONFIDENCE
        least, most = self.looks
        return look_confidence(max(least, DECIDING_ROUNDS), most)

    def may_be_broken(self, case: str) -> bool:
        """Return whether ``case`` may fail on both sides without an effect on the verdict."""
        names = {case, case.partition("[")[0]}
        return any(
            re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name, re.DOTALL)
            for pattern in self.allow_broken
            for name in names
        )

    def undecided(self, metric: str) -> Undecided:
        """Return what an inconclusive comparison of ``metric`` makes of the verdict.

        A benchmark's own metric that gates has to be decided.
        """
        known = METRICS.get(metric)
        return self.of(known).undecided if known else "inconclusive"


def with_threshold(metric: Metric, threshold: float) -> Metric:
    """Return ``metric`` with a threshold that was set. It replaces the whole's share."""
    return replace(metric, threshold=threshold, whole="", share_of_whole=0.0)


def threshold_at(metric: Metric, base: float | None, whole: float | None = None) -> float:
    """Return the threshold at base's value ``base``, and the value ``whole`` of its whole."""
    of_whole = metric.share_of_whole * (whole or 0.0)
    return max(metric.threshold, metric.share * (base or 0.0), of_whole)


def margin(threshold: float) -> tuple[float, float]:
    """Return the ratios between which a change counts as none: ``1/(1 + t)`` to ``1 + t``.

    Symmetric for ratios, not for differences: swapping the sides turns the one end into the
    other, and latency and the throughput made from it are judged alike.
    """
    return 1.0 / (1.0 + threshold), 1.0 + threshold


class Worsening(NamedTuple):
    """By how much head is worse than base: the change and its interval, NaN where unknown.

    They are logarithms of ratios, or differences if the row has one, and so is the threshold. An
    unknown number fulfils none of the conditions.
    """

    change: float
    lo: float
    hi: float
    threshold: float

    @property
    def has_interval(self) -> bool:
        """Whether the interval is known."""
        return not math.isnan(self.lo)

    @property
    def reaches(self) -> bool:
        """Whether the change counts at its threshold, but for rounding. No change never does."""
        return self.change != 0.0 and abs(self.change) >= self.threshold * (1.0 - 1e-12)

    @property
    def looks_worse(self) -> bool:
        """Whether the estimate is worse by the threshold or more, significant or not."""
        return self.change >= self.threshold

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval is worse by more than the threshold."""
        return self.lo > self.threshold

    @property
    def is_not_worse(self) -> bool:
        """Whether the interval excludes a change for the worse of the threshold or more."""
        return self.hi < self.threshold

    @property
    def is_within(self) -> bool:
        """Whether the interval lies within the margin around no change."""
        return -self.threshold < self.lo and self.hi < self.threshold

    @property
    def is_beyond(self) -> bool:
        """Whether the interval lies wholly beyond one end of the margin."""
        return self.lo > self.threshold or self.hi < -self.threshold


def worsening(row: Comparison) -> Worsening:
    """Return by how much the row's head is worse."""
    threshold = row.threshold
    ends = (row.difference, row.difference_lo, row.difference_hi)
    if row.difference is None:
        threshold = math.log1p(threshold)
        ends = _log(row.ratio), _log(row.ratio_lo), _log(row.ratio_hi)
    change, lo, hi = (math.nan if end is None else end for end in ends)
    if row.direction == "lower":
        return Worsening(change, lo, hi, threshold)
    return Worsening(-change, -hi, -lo, threshold)


def pair_changes(row: Comparison) -> list[float]:
    """Return each pair's change on the scale of ``row.se``, or none if a pair is unknown."""
    if row.base is None or row.head is None or len(row.base.values) != row.base.workers:
        return []
    pairs = list(zip(row.base.values, row.head.values, strict=True))
    if row.difference is not None:
        return [head - base for base, head in pairs]
    if any(min(pair) <= 0.0 for pair in pairs):
        return []
    return [math.log(head / base) for base, head in pairs]


def standard_error(row: Comparison) -> float | None:
    """Return the standard error on the scale of ``Worsening``, from the row's interval, or None.

    For rows without an ``se``: ratios of arithmetic means, and rows of files that lack the field.
    """
    worse = worsening(row)
    if row.p is None or row.df is None or not worse.has_interval:
        return None
    return (worse.hi - worse.lo) / 2.0 / t_quantile(0.5 + row.confidence / 2, row.df)


def _log(ratio: float | None) -> float | None:
    return math.log(ratio) if ratio is not None and ratio > 0.0 else None
