"""The margin around "no change", and a row's change on the scale that the margin is of.

Ratios are taken as logarithms, metrics that may be zero as differences: on either scale the margin
is the threshold to both sides of zero.
"""

from __future__ import annotations

import math

from perfci.model.report import Comparison
from perfci.stats.student import t_quantile


def margin(threshold: float) -> tuple[float, float]:
    """Return the ratios between which a change counts as none: ``1/(1 + t)`` to ``1 + t``.

    Symmetric for ratios, not for differences: swapping the sides turns the one end into the
    other, and latency and the throughput made from it are judged alike.
    """
    return 1.0 / (1.0 + threshold), 1.0 + threshold


def worse_by(row: Comparison) -> tuple[float | None, float | None, float | None]:
    """Return the change and its interval turned so that more is worse: logs, or differences."""
    estimate, lo, hi = (
        (row.difference, row.difference_lo, row.difference_hi)
        if row.difference is not None
        else (_log(row.ratio), _log(row.ratio_lo), _log(row.ratio_hi))
    )
    if row.direction == "lower":
        return estimate, lo, hi
    return _minus(estimate), _minus(hi), _minus(lo)


def standard_error(row: Comparison) -> float | None:
    """Return the standard error on that scale that the row's interval and ``df`` are of, or None.

    For what has no other: a ratio of arithmetic means, and a file that was written without it.
    """
    _, lo, hi = worse_by(row)
    if row.p is None or row.df is None or lo is None or hi is None:
        return None
    return (hi - lo) / 2.0 / t_quantile(0.5 + row.confidence / 2, row.df)


def threshold_of(row: Comparison) -> float:
    """Return the row's threshold on the scale of ``worse_by``."""
    return row.threshold if row.difference is not None else math.log1p(row.threshold)


def is_within(lo: float, hi: float, threshold: float) -> bool:
    """Say whether an interval on that scale lies within the margin."""
    return -threshold < lo and hi < threshold


def is_beyond(lo: float, hi: float, threshold: float) -> bool:
    """Say whether it lies wholly on the far side of one end of the margin."""
    return lo > threshold or hi < -threshold


def _log(ratio: float | None) -> float | None:
    return math.log(ratio) if ratio is not None and ratio > 0.0 else None


def _minus(value: float | None) -> float | None:
    return None if value is None else -value
