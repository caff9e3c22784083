"""The margin around "no change", and when an interval has settled on which side it is."""

from __future__ import annotations


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


def is_decided(ratio_lo: float | None, ratio_hi: float | None, threshold: float) -> bool:
    """Say whether the interval lies within the margin, or wholly beyond one of its ends.

    The stopping rule: no end of the margin lies inside the interval. It never looks at p:
    a session that measures on until p is small finds a regression in any noise.
    """
    if ratio_lo is None or ratio_hi is None:
        return False
    return not any(ratio_lo <= end <= ratio_hi for end in margin(threshold))
