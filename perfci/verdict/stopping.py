"""The margin around "no change", and when an interval has settled on which side it is."""

from __future__ import annotations

import math

from perfci.record.report import Comparison
from perfci.stats.student import CONFIDENCE, t_quantile
from perfci.stats.summary import bounded_exp
from perfci.verdict.doubting import is_clear, may_be_luck, why_not_unchanged
from perfci.verdict.policy import Policy

_STOP_LEVEL = 0.01
"""Looking at 95 % after each of 5 to 20 rounds, the report's interval holds a true change at the
margin in 80 % of runs; at 99 % in 91 %. Surer still takes more rounds everywhere."""
_ENOUGH_WITHOUT_SPREAD = 10


def margin(threshold: float) -> tuple[float, float]:
    """Return the ratios between which a change counts as none: ``1/(1 + t)`` to ``1 + t``.

    Symmetric for ratios, not for differences: swapping the sides turns the one end into the
    other, and latency and the throughput made from it are judged alike.
    """
    return 1.0 / (1.0 + threshold), 1.0 + threshold


def is_within(lo: float | None, hi: float | None, threshold: float) -> bool:
    """Say whether the interval of a ratio lies within the margin."""
    if lo is None or hi is None:
        return False
    lower, upper = margin(threshold)
    return lower < lo and hi < upper


def is_decided(
    ratio_lo: float | None,
    ratio_hi: float | None,
    threshold: float,
    *,
    pairs: int = 0,
    level: float = 1.0 - CONFIDENCE,
) -> bool:
    """Say whether more rounds could still change the answer, from the interval alone.

    Decided is an interval of 99 % within the margin: the rule looks after every round, so that
    it has to be surer than the 95 % of the report. Or one wholly beyond one of its ends which,
    widened to ``1 - level`` (alpha ÷ the report's gating comparisons, what Holm asks of the first
    of them), also leaves out "no change": a session that ended earlier would call a clear
    slow-down inconclusive. ``ratio_lo`` and ``ratio_hi`` are at 95 %, made by ``pairs``. p itself
    never stops a session: one that measures on until p is small finds a regression in any noise.
    """
    if ratio_lo is None or ratio_hi is None or ratio_lo <= 0.0:
        return False
    sure = _widened(ratio_lo, ratio_hi, _STOP_LEVEL, pairs)
    if is_within(*sure, threshold):
        return True
    if not is_beyond(*sure, threshold):
        return False
    lo, hi = _widened(ratio_lo, ratio_hi, level, pairs)
    return pairs < 2 or not lo <= 1.0 <= hi


def _widened(lo: float, hi: float, level: float, pairs: int) -> tuple[float, float]:
    """Return a 95 % interval that ``pairs`` made as one of ``1 - level``."""
    if pairs < 2:
        return lo, hi
    wider = t_quantile(1.0 - level / 2.0, pairs - 1) / t_quantile(0.5 + CONFIDENCE / 2, pairs - 1)
    center, half = math.log(lo * hi) / 2.0, math.log(hi / lo) / 2.0 * wider
    return bounded_exp(center - half), bounded_exp(center + half)


def is_beyond(lo: float | None, hi: float | None, threshold: float) -> bool:
    """Say whether the interval of a ratio lies wholly on the far side of one end of the margin."""
    if lo is None or hi is None:
        return False
    return not any(lo <= end <= hi for end in margin(threshold)) and not is_within(
        lo, hi, threshold
    )


def wants_rounds(row: Comparison, policy: Policy, family: int) -> bool:
    """Say whether more rounds could still decide what a paired ``row`` says of the code.

    Beside an undecided interval: a change that would be believed but for its few rounds, or for
    a doubt that more rounds may dispel; no change, but for rounds set aside on one side only. Ten
    rounds without any spread are followed by more of the same.
    """
    pairs = row.base.workers if row.base else 0
    if row.p is None and pairs >= _ENOUGH_WITHOUT_SPREAD:
        return False
    if why_not_unchanged(row):
        return True
    level = policy.alpha / max(1, family)
    if not is_decided(row.ratio_lo, row.ratio_hi, row.threshold, pairs=pairs, level=level):
        return True
    return is_beyond(row.ratio_lo, row.ratio_hi, row.threshold) and (
        bool(row.doubt) or awaits_rounds(row, policy, family)
    )


def awaits_rounds(row: Comparison, policy: Policy, family: int) -> bool:
    """Say whether a paired ``row`` shows a change that its few rounds alone keep from counting."""
    pairs = row.base.workers if row.base else 0
    return (
        is_beyond(row.ratio_lo, row.ratio_hi, row.threshold)
        and not is_clear(row.ratio)
        and may_be_luck(pairs, pairs, family, policy.alpha)
    )
