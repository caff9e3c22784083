"""Processes of two speeds: the change within each speed, apart from how often each speed occurs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from perfci.stats.t_tests import mean, t_quantile, variance

_FEWEST = 5
"""Least number of pairs that can show two speeds."""
_LEAST_GAP = math.log1p(0.02)
"""Least distance of two speeds, as a log. Closer speeds are noise like any other."""
_MOST_SPLITS = 3
"""Number of the widest steps between neighbouring values. Two of these steps bound the groups."""
SHARE_CONFIDENCE = 0.95
"""Confidence of each limit of the mean over both speeds."""


@dataclass(frozen=True, slots=True)
class TwoSpeeds:
    """Pairs whose processes run at two speeds, ``gap`` (a log) apart.

    ``moves`` has for each pair 1 if head alone was slow, -1 if base alone was, and 0 if both ran at
    the same speed. ``lo`` and ``hi`` are limits of the mean change over both speeds, each of 95 %.
    ``widening`` is the standard error of the change within speeds ÷ that of a mean of as many
    values. It is above 1, because the gap is estimated, too.
    """

    gap: float
    moves: tuple[int, ...]
    lo: float
    hi: float
    widening: float

    @property
    def head_slow(self) -> int:
        """The number of pairs in which head alone was slow."""
        return self.moves.count(1)

    @property
    def base_slow(self) -> int:
        """The number of pairs in which base alone was slow."""
        return self.moves.count(-1)


def two_speeds(changes: Sequence[float]) -> TwoSpeeds | None:
    """Return the two speeds that pairs' log ratios ``changes`` show, or None if they don't.

    Notes
    -----
    If processes of both sides run at one of two speeds, log ratios are ``δ + g k + e`` with
    ``k`` of -1, 0 and 1: a mixture of three normal components at equal distances. It is fitted by
    classification likelihood (Scott & Symons 1971, Biometrics 27:387-397): least squares on ``k``
    for each division of the sorted values into three groups. All three groups must be there: two
    groups can't tell a change from a speed. ``g`` must exceed ``6 + 20 / (n - 3)`` standard
    deviations of ``e`` (docs/results/error-rates.md measures how often other noise does). Sides
    that are slow independently, in shares p and q of the pairs, have ``k = 0`` in a share of
    ``p q + (1 - p) (1 - q)``, at least twice the geometric mean of the other two shares. With less
    than once that mean, the groups are outliers. ``δ`` is the change within either speed. Its
    variance is ``s² Σk² / (n Σk² - (Σk)²)``, ``s²`` the residual variance of n - 2 degrees of
    freedom.
    """
    count = len(changes)
    if count < _FEWEST or not all(map(math.isfinite, changes)):
        return None
    order = sorted(range(count), key=lambda index: changes[index])
    values = [changes[index] for index in order]
    widest = sorted(range(1, count), key=lambda i: values[i - 1] - values[i])[:_MOST_SPLITS]
    fits = [_fitted(values, *sorted(splits)) for splits in combinations(widest, 2)]
    residual, gap, low, high = min(fits)
    spread = math.sqrt(residual / (count - 2))
    least = max(_LEAST_GAP, (6.0 + 20.0 / (count - 3)) * spread)
    if gap <= least or spread <= 1e-9 * gap:  # values without any spread are a clock's steps
        return None
    if count - low - high < math.sqrt(low * high):
        return None
    sorted_moves = [-1] * low + [0] * (count - low - high) + [1] * high
    moves = dict(zip(order, sorted_moves, strict=True))
    half = t_quantile(SHARE_CONFIDENCE, count - 1) * math.sqrt(variance(changes) / count)
    center = mean(changes)
    imbalance = (high - low) ** 2 / (count * (high + low))
    widening = math.sqrt((count - 1) / (count - 2) / (1.0 - imbalance))
    in_order = tuple(moves[index] for index in range(count))
    return TwoSpeeds(gap, in_order, center - half, center + half, widening)


def _fitted(values: Sequence[float], low: int, rest: int) -> tuple[float, float, int, int]:
    """Return the residual sum of squares, the gap, and the sizes of the outer groups.

    ``low`` and ``rest`` are the indices where the middle and the upper group begin. The gap is
    fitted by least squares.
    """
    count, high = len(values), len(values) - rest
    outer, imbalance = low + high, high - low
    total = math.fsum(values)
    moved = math.fsum(values[rest:]) - math.fsum(values[:low])
    gap = (count * moved - imbalance * total) / (count * outer - imbalance**2)
    change = (total - gap * imbalance) / count
    parts = (
        (values[:low], change - gap),
        (values[low:rest], change),
        (values[rest:], change + gap),
    )
    residual = math.fsum((value - center) ** 2 for group, center in parts for value in group)
    return residual, gap, low, high
