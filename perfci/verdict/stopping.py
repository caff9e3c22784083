"""The margin around "no change", and when an interval has settled on which side it is."""

from __future__ import annotations

import math

from perfci.stats.student import CONFIDENCE, t_quantile


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

    Decided is an interval within the margin; or one wholly beyond one of its ends, which, widened
    to ``1 - level`` (alpha ÷ the report's gating comparisons, what Holm asks of the first of
    them; ``pairs`` made it), also leaves out "no change": a session that ended earlier would call
    a clear slow-down inconclusive. p itself never stops a session: one that measures on until p
    is small finds a regression in any noise.
    """
    if ratio_lo is None or ratio_hi is None or ratio_lo <= 0.0:
        return False
    if is_within(ratio_lo, ratio_hi, threshold):
        return True
    if any(ratio_lo <= end <= ratio_hi for end in margin(threshold)):
        return False
    if pairs < 2:
        return True
    lo, hi = math.log(ratio_lo), math.log(ratio_hi)
    wider = t_quantile(1.0 - level / 2.0, pairs - 1) / t_quantile(0.5 + CONFIDENCE / 2, pairs - 1)
    return abs(lo + hi) / 2.0 > (hi - lo) / 2.0 * wider
