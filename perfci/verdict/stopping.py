"""When a case is decided, and which undecided cases get the next rounds. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from perfci.metrics import METRICS
from perfci.metrics.latency import TAILS
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.report import Comparison
from perfci.stats.quantile import median
from perfci.stats.speeds import SHARE_CONFIDENCE
from perfci.stats.spread import upper_bound
from perfci.stats.t_tests import mean, t_quantile, variance
from perfci.verdict.caveats import (
    is_unproven,
    mean_over_speeds,
    not_unchanged_reason,
    rounds_to_believe,
)
from perfci.verdict.policy import Policy, Worsening, pair_changes, worsening

_ENOUGH_WITHOUT_SPREAD = 10
"""After this many rounds without any spread, further rounds are expected to be the same."""
_ENOUGH_AT_THRESHOLD = 8
_LIKELY, _HARDLY = 0.5, 0.05
"""Chances of a decision. From ``_LIKELY`` on, rounds are expected to decide a row. Below
``_HARDLY`` they are expected not to."""
_SPREADS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles of the true spread that ``chance`` averages over, equally probable."""
_STEPS = tuple(NormalDist().inv_cdf((2 * i + 1) / 18) for i in range(9))
"""Nine standard normal values, equally probable, that ``chance`` averages over."""


def is_decided(worse: Worsening, p: float | None, level: float, *, two_sided: bool = False) -> bool:
    """Say whether a change needs no further round.

    Its interval is the report's own, corrected for the looks. It is decided in two cases:

    - The interval lies below the threshold, and so excludes a regression. With ``two_sided`` it
      has to lie within the margin.
    - The interval lies wholly beyond the threshold, and ``p`` is below ``level``. The level is
      alpha ÷ the report's gating comparisons, what Holm asks of the first of them. A session that
      ended before that would call a clear slow-down inconclusive.

    p alone never stops a session: measuring until p is small finds a regression in any noise.
    """
    if worse.is_within or (worse.is_not_worse and not two_sided):
        return True
    return worse.is_beyond and p is not None and p < level


def wants_rounds(row: Comparison, policy: Policy, family: int) -> bool:
    """Say whether more rounds could still decide a paired ``row``.

    They could if the interval is undecided. They could also if a change isn't believed only because
    rounds are few, or because of a caveat that more rounds may remove. An improvement that reaches
    the threshold gets the few rounds that it takes to believe it, but no others: no verdict asks
    for improvements.
    """
    if row.p is None and row.pairs >= _ENOUGH_WITHOUT_SPREAD:
        return False
    worse, level = worsening(row), policy.alpha / max(1, family)
    if not is_decided(worse, row.p, level, two_sided=policy.two_sided):
        return True
    if worse.is_not_worse and not_unchanged_reason(row):
        return True
    if worse.is_not_worse and not policy.two_sided:
        return worse.change <= -worse.threshold and is_unproven(row, family, policy.alpha)
    return worse.is_beyond and (bool(row.caveat) or awaits_rounds(row, policy, family))


def awaits_rounds(row: Comparison, policy: Policy, family: int) -> bool:
    """Say whether only its few rounds keep the change of a paired ``row`` from counting.

    With too few rounds for an interval, it is enough that head looks worse by the threshold.
    """
    worse = worsening(row)
    if not worse.has_interval:
        return row.pairs < DECIDING_ROUNDS and worse.looks_worse
    return worse.is_beyond and is_unproven(row, family, policy.alpha)


def undecided_metrics(
    comparisons: Iterable[Comparison], policy: Policy, family: int
) -> tuple[str, ...]:
    """Return the metrics that need more rounds: those that would leave the verdict inconclusive.

    A gating metric that policy lets pass undecided (cold start: half an import of torch is noise)
    prolongs a session only while it looks worse by its threshold, significant or not. A tail
    doesn't if the median is worse already. It prolongs
    none if further rounds don't measure it (only the first rounds compile again). A metric that
    warns gets the rounds that it takes to believe it, while its whole interval is beyond its
    threshold. ``family`` is the number of gating comparisons that the report will have.
    """
    tested = [row for row in comparisons if row.method == "paired_t"]
    slower = {row.case for row in tested if row.metric == "latency_p50" and worsening(row).is_worse}
    gating = [row for row in tested if row.gate == "fail"]
    # a row that warns is corrected for all rows: about so many times as many
    everything = math.ceil(family * len(tested) / max(1, len(gating)))

    def may_prolong(row: Comparison) -> bool:
        if policy.undecided(row.metric) == "inconclusive":
            return True
        if row.metric in TAILS and row.case in slower:
            return False
        return _in_every_round(row) and worsening(row).looks_worse

    def warns(row: Comparison) -> bool:
        if row.gate != "warn" or not _in_every_round(row):
            return False
        return worsening(row).has_interval and awaits_rounds(row, policy, everything)

    return tuple(
        row.metric
        for row in tested
        if warns(row)
        or (row.gate == "fail" and may_prolong(row) and wants_rounds(row, policy, family))
    )


def _in_every_round(row: Comparison) -> bool:
    return row.metric not in METRICS or METRICS[row.metric].rounds_setting == "rounds"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An undecided case: its benchmark file, the cost of a round in s, and the rounds it needs.

    ``needs`` has, for each undecided metric, the number of further rounds that would decide it.
    """

    case: str
    file: str
    round_s: float
    needs: tuple[int, ...]

    def decisions_per_second(self, start_s: float = 0.0) -> float:
        """Return the best rate: decisions ÷ (``start_s`` + their rounds' time), over all counts."""
        return max(
            count / (start_s + rounds * self.round_s)
            for count, rounds in enumerate(sorted(self.needs), start=1)
        )


def next_cases(
    candidates: Sequence[Candidate], *, start_s: float, left_s: float
) -> tuple[str, ...]:
    """Return the cases of the next sweep; ``start_s`` is the cost of a fork server.

    These are all cases if all can be decided in the time that is left. Otherwise these are the case
    with the best rate of decisions, and the cases of its file that reach this rate with its fork
    server: a knapsack filled by value for weight
    (Dantzig 1957, Operations Research 5:266-288).
    """
    files = {candidate.file for candidate in candidates}
    rounds_s = sum(max(candidate.needs) * candidate.round_s for candidate in candidates)
    if rounds_s + len(files) * start_s <= left_s:
        return tuple(candidate.case for candidate in candidates)
    best = max(candidates, key=lambda candidate: candidate.decisions_per_second(start_s))
    best_rate = best.decisions_per_second(start_s)
    return tuple(
        candidate.case
        for candidate in candidates
        if candidate.file == best.file and candidate.decisions_per_second() >= best_rate
    )


def rounds_to_decide(row: Comparison, policy: Policy, family: int, most: int) -> int | None:
    """Return how many more rounds probably decide a ``row``, or None for more than ``most``."""
    return next(
        (more for more in range(1, most + 1) if chance(row, policy, family, more) >= _LIKELY), None
    )


def is_out_of_reach(row: Comparison, policy: Policy, family: int, most: int) -> bool:
    """Say whether even ``most`` more rounds would hardly decide a paired ``row``.

    The rounds would decide the row neither as it is, nor without its most extreme pair. Among five
    pairs, a single disturbed pair makes most of the spread, and such a pair need not come again.
    A change at its threshold is out of reach, too.
    """
    if _is_at_threshold(row, most):
        return True
    rows = [row, without_extreme_pair(row)]
    return most < 1 or all(chance(known, policy, family, most) < _HARDLY for known in rows)


def _is_at_threshold(row: Comparison, most: int) -> bool:
    """Say whether a well-known change is so near its threshold that ``most`` rounds hardly tell.

    It will lie inside of the interval that these rounds leave.
    """
    if row.pairs < _ENOUGH_AT_THRESHOLD:
        return False
    change, lo, hi, threshold = worsening(row)
    left = (hi - lo) / 2.0 * math.sqrt(row.pairs / (row.pairs + most))
    return threshold / 2.0 < lo and hi < 2.0 * threshold and abs(change - threshold) < left


def without_extreme_pair(row: Comparison) -> Comparison:
    """Return ``row`` with mean and spread as they are without the pair farthest from the median.

    The row's counts stay. A row with unknown values, or of two speeds, is returned as it is.
    """
    changes = pair_changes(row)
    if len(changes) < DECIDING_ROUNDS or row.se is None or row.df is None or mean_over_speeds(row):
        return row
    middle = median(changes)
    kept = sorted(changes, key=lambda change: abs(change - middle))[:-1]
    spread = variance(changes)
    if spread == 0.0:
        return row
    se = row.se * math.sqrt(variance(kept) / spread)
    half_width = se * t_quantile(0.5 + row.confidence / 2.0, row.df)
    lo, hi = mean(kept) - half_width, mean(kept) + half_width
    if row.difference is not None:
        return replace(row, se=se, difference_lo=lo, difference_hi=hi)
    return replace(row, se=se, ratio_lo=math.exp(lo), ratio_hi=math.exp(hi))


def chance(row: Comparison, policy: Policy, family: int, more: int) -> float:
    """Return the chance that a report with ``more`` further rounds decides a paired ``row``.

    Notes
    -----
    Predictive power (Spiegelhalter, Freedman & Blackburn 1986, Controlled Clinical Trials 7:8-17):
    with n rounds of the mean m and N in the end, the final mean is ``m + σ √(1/n - 1/N) z``; σ²
    itself is ``df s² / χ²``. Both are taken at quantiles of equal probability. Assumes about
    normal rounds, and no prior knowledge.
    """
    pairs = row.pairs
    if pairs + more < DECIDING_ROUNDS:
        return 0.0
    now = worsening(row)
    if not (now.has_interval and row.se and row.df):
        return 1.0
    level, final = policy.alpha / max(1, family), pairs + more
    if now.is_beyond and final < rounds_to_believe(family, policy.alpha):
        return 0.0
    left = math.sqrt(1.0 / pairs - 1.0 / final)
    df = final - 1
    sure = t_quantile(0.5 + row.confidence / 2.0, df)
    believed = t_quantile(1.0 - level / 2.0, df)
    decided = 0
    for share in _SPREADS:
        spread = upper_bound(row.se * math.sqrt(pairs), int(row.df), share)
        se = spread / math.sqrt(final)
        for step in _STEPS:
            change = (now.lo + now.hi) / 2.0 + spread * left * step
            then = Worsening(change, change - sure * se, change + sure * se, now.threshold)
            decided += abs(change) >= max(now.threshold, believed * se) or is_decided(
                then, None, level, two_sided=policy.two_sided
            )
    of_change = decided / (len(_SPREADS) * len(_STEPS))
    return of_change if now.is_worse else of_change * _chance_of_mean(row, pairs, more)


def _chance_of_mean(row: Comparison, pairs: int, more: int) -> float:
    """Return the chance that the mean over two speeds ends below the threshold.

    The chance is 1 if the row has one speed.
    """
    both = mean_over_speeds(row)
    if both is None:
        return 1.0
    middle, worst = both
    final, half = pairs + more, worst - middle
    sd = half / t_quantile(SHARE_CONFIDENCE, pairs - 1) * math.sqrt(1.0 - pairs / final)
    left = half * math.sqrt(pairs / final)
    ends = (middle + sd * step + left for step in _STEPS)
    return sum(end < worsening(row).threshold for end in ends) / len(_STEPS)
