"""How sure it is that two neighbouring levels differ, given that the place was searched for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.trend.detect.noise import Prepared, Wander, inflation

if TYPE_CHECKING:
    from numpy.typing import NDArray


PRIOR = 20.0
"""Points: the weight of the series' variance beside that of a stretch's own."""

# Fitted to benchmarks/trend/critical_values.py: in a quiet series of 16 to 1,500 points a false
# change is about as rare as alpha says, but for strong autocorrelation in fewer than 100 points.
SEARCHES = 40.0
"""Independent places that the search through 365 points amounts to."""
FEWEST_SEARCHES = 2.0
DF_SHARE = 0.25
"""Degrees of freedom for each effective point, at most: rho and sigma are estimates too."""
DF_LEAST = 4.0


@dataclass(frozen=True, slots=True)
class Sums:
    """Cumulated values and squares, each (n + 1,) from 0: moments of any stretch at once."""

    values: NDArray[Any]
    squares: NDArray[Any]

    def mean(self, begin: int, end: int) -> float:
        """Return the mean of the points from ``begin`` up to ``end``, not included."""
        return float(self.values[end] - self.values[begin]) / (end - begin)

    def spread(self, begin: int, end: int) -> float:
        """Return the sum of squares around the mean of the points from ``begin`` up to ``end``."""
        total = float(self.values[end] - self.values[begin])
        squares = float(self.squares[end] - self.squares[begin])
        return max(0.0, squares - total * total / (end - begin))


@dataclass(frozen=True, slots=True)
class LevelTest:
    """The difference of two levels, its standard error, degrees of freedom and p."""

    difference: float
    error: float
    df: float
    p: float


@dataclass(frozen=True, slots=True)
class Split:
    """A level ends before ``place``; ``begin`` and ``end`` bound the levels on its two sides."""

    begin: int
    place: int
    end: int
    test: LevelTest


def cumulate(cleaned: NDArray[Any]) -> Sums:
    """Return the sums of ``cleaned`` (n,), centred first so that no digits are lost."""
    import numpy as np

    centred = cleaned - cleaned.mean()
    return Sums(
        values=np.concatenate([[0.0], np.cumsum(centred)]),
        squares=np.concatenate([[0.0], np.cumsum(centred * centred)]),
    )


def split_gains(sums: NDArray[Any], begin: int, end: int) -> NDArray[Any]:
    """Return by how much each split of begin..end lowers the sum of squares, (end - begin - 1,).

    ``sums`` (n + 1,) are cumulated from 0.
    """
    import numpy as np

    left = np.arange(1, end - begin)
    right = end - begin - left
    middle = sums[begin + 1 : end]
    gap = (middle - sums[begin]) / left - (sums[end] - middle) / right
    gains: NDArray[Any] = gap * gap * left * right / (end - begin)
    return gains


def compare_levels(
    prepared: Prepared, sums: Sums, wander: Wander, begin: int, place: int, end: int
) -> LevelTest:
    """Test the points from ``place`` to ``end`` against those from ``begin`` to ``place``.

    Notes
    -----
    Welch's t with three variances: each side's own, drawn to the series' as by ``PRIOR`` further
    points and inflated for AR(1), and the wander's. Degrees of freedom by Satterthwaite (1946,
    Biometrics Bulletin 2:110-114), counting effective points.
    """
    var_left, df_left = stretch_variance(prepared, sums, begin, place)
    var_right, df_right = stretch_variance(prepared, sums, place, end)
    wandered = wander.variance(place - begin, end - place)
    variance = var_left + var_right + wandered
    parts = var_left**2 / df_left + var_right**2 / df_right + wandered**2 / wander.df
    df = variance**2 / parts
    difference = sums.mean(place, end) - sums.mean(begin, place)
    error = math.sqrt(variance)
    return LevelTest(difference, error, df, searched_p(prepared, difference / error, df))


def searched_p(prepared: Prepared, t: float, df: float) -> float:
    """Return the two-sided p of Student's ``t``, adjusted for having searched for the place.

    Notes
    -----
    ``p`` times the number of independent places, as Bonferroni's, which grows faster than the
    number of effective points because a level has two ends. The factors are fitted to the
    simulation and have no theory.
    """
    from scipy import special

    count = len(prepared.cleaned)
    effective = (1.0 - prepared.rho) / (1.0 + prepared.rho)
    searches: float = max(FEWEST_SEARCHES, SEARCHES * (count * math.sqrt(effective) / 365.0) ** 1.5)
    if not prepared.exact:
        df = min(df, DF_LEAST + DF_SHARE * count * effective)
    tail = float(special.stdtr(df, -abs(t)))
    return min(1.0, searches * 2.0 * tail)


def stretch_variance(prepared: Prepared, sums: Sums, begin: int, end: int) -> tuple[float, float]:
    """Return the variance of the mean of a stretch, and its degrees of freedom."""
    count = end - begin
    inflated = float(inflation(float(count), prepared.rho))
    weight = PRIOR + count - 1
    pooled = (PRIOR * prepared.sigma**2 + sums.spread(begin, end)) / weight
    return pooled * inflated / count, weight / inflated


# A confidence set for the place of a step: the one that fits best need not be the true one.

CRITICAL = -2.0 * math.log(1.0 - math.sqrt(0.95))
"""7.35: the 95th percentile of twice the log likelihood ratio of the best place to the true one."""


def place_interval(prepared: Prepared, sums: Sums, split: Split) -> tuple[int, int]:
    """Return the last point of the old level and the first of the new one, with 95 % confidence.

    Of an exact series these are the split's own.

    Notes
    -----
    All places whose likelihood is not far below the best one's, from the first to the last of
    them: Eo and Morley (2015, Quantitative Economics 6:463-497), after Siegmund (1988, Annals of
    Statistics 16:1355-1371), whose P(LR ≤ x) = (1 - exp(-x/2))². The variance is the long run's of
    AR(1). benchmarks/trend/places.py measures how often the true place is inside.
    """
    import numpy as np

    if prepared.exact:
        return split.place - 1, split.place
    gains = split_gains(sums.values, split.begin, split.end)
    likely = np.flatnonzero(
        gains[split.place - split.begin - 1] - gains <= CRITICAL * _variance(prepared, sums, split)
    )
    return split.begin + int(likely[0]), split.begin + int(likely[-1]) + 1


def _variance(prepared: Prepared, sums: Sums, split: Split) -> float:
    """Return the noise's long-run variance: the two stretches' own, drawn to the series'."""
    within = sums.spread(split.begin, split.place) + sums.spread(split.place, split.end)
    points = split.end - split.begin
    pooled = (PRIOR * prepared.sigma**2 + within) / (PRIOR + points - 2)
    return pooled * float(inflation(float(points), prepared.rho))
