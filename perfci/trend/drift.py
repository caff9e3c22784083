"""Slow drift: the last days of a series against its last accepted level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.trend.noise import prepare
from perfci.trend.ratios import ratio_of
from perfci.trend.significance import cumulate, stretch_variance
from perfci.trend.wander import measure_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

BASELINE = 30
"""Nights that make an accepted level."""

FEWEST = 4
"""Nights on each side: with fewer there is nothing to say."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """What to compare: the accepted level from ``begin``, and the last days from ``recent`` on.

    They are indices into the series. ``steps`` are log ratios of the changes named since then; the
    first of them ends the accepted level at ``until``, which is not of it.
    """

    begin: int
    until: int
    recent: int
    steps: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Shift:
    """The last days ÷ the accepted level, with its 95 % interval and p."""

    points: int
    ratio: float
    ratio_lo: float
    ratio_hi: float
    p: float


def shift(values: NDArray[Any], stretches: Stretches, floor: float) -> Shift | None:
    """Return how far the last days are off, None where that is not worth naming.

    A drift that the changes named since then explain is none: it is one of more than ``floor``
    that is left when they are taken off.

    Notes
    -----
    Student's t on what is left, each mean with the series' variance, inflated for
    AR(1), and the wander on top; no search, as both stretches are given.
    """
    from scipy import special

    end = min(stretches.begin + BASELINE, stretches.until, stretches.recent)
    count, recent = end - stretches.begin, len(values) - stretches.recent
    if min(count, recent) < FEWEST or values.min() <= 0.0 or values.min() == values.max():
        return None
    first, last = values[stretches.begin : end].mean(), values[stretches.recent :].mean()
    least = math.log1p(floor)
    if abs(math.log(last / first) - math.fsum(stretches.steps)) < least / 2:
        return None  # far from it: spare the rest
    prepared = prepare(values)
    sums = cumulate(prepared.cleaned)
    difference = sums.mean(stretches.recent, len(values)) - sums.mean(stretches.begin, end)
    unexplained = difference - math.fsum(stretches.steps)
    if abs(difference) < least or abs(unexplained) < least:
        return None
    wander = measure_blocks(prepared, sums.values).wander()
    one, one_df = stretch_variance(prepared, sums, stretches.begin, end)
    two, two_df = stretch_variance(prepared, sums, stretches.recent, len(values))
    variance = one + two + wander.variance
    df = variance**2 / (one**2 / one_df + two**2 / two_df + wander.variance**2 / wander.df)
    error = math.sqrt(variance)
    half = float(special.stdtrit(df, 0.975)) * error
    return Shift(
        points=recent,
        ratio=ratio_of(difference),
        ratio_lo=ratio_of(difference - half),
        ratio_hi=ratio_of(difference + half),
        p=2.0 * float(special.stdtr(df, -abs(unexplained / error))),
    )
