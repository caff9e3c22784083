"""Find the fewest places that explain where many changes lie, each likely for its changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.trend.noise import CRITICAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

OWN_PLACE = 10.0
"""Cost of another place, as twice a log likelihood. Moving a change to the edge of its 95 % range
costs less (7.35). So a single change joins other changes there, while two or three keep a place of
their own."""
_ROUNDING = 1e-6
"""Gains this close to ``OWN_PLACE`` are equal to it."""


@dataclass(frozen=True, slots=True)
class Span:
    """The rows where a change may be: its first new row is after ``lo``, and ``hi`` at the latest.

    By the best fit, its first new row is after ``before``, and ``after`` at the latest.
    """

    lo: int
    before: int
    after: int
    hi: int


def common_places(spans: Sequence[Span]) -> list[int]:
    """Return the place of each span: a likely first new row, shared with as many spans as possible.

    Notes
    -----
    A place costs a span nothing between ``before`` and ``after``, ``CRITICAL`` at the span's ends,
    and in between as a parabola, like a log likelihood. Places are opened one by one, each time the
    place that lowers the sum of all costs the most (greedy facility location). Each span goes to
    its cheapest place.
    """
    import numpy as np

    if not spans:
        return []
    profiles, which = np.unique(
        np.array([(span.lo, span.before, span.after, span.hi) for span in spans], dtype=np.int64),
        axis=0,
        return_inverse=True,
    )
    weights = np.bincount(which.ravel(), minlength=len(profiles))
    costs = [_costs(*profile) for profile in profiles.tolist()]
    lo, hi = profiles[:, 0], profiles[:, 3]
    gains = np.zeros(int(hi.max()) + 1)
    for index, cost in enumerate(costs):
        gains[lo[index] + 1 : hi[index] + 1] += weights[index] * (OWN_PLACE - cost)
    now = np.full(len(profiles), OWN_PLACE)
    chosen = np.full(len(profiles), -1)
    while (chosen < 0).any() or gains.max() > OWN_PLACE + _ROUNDING:
        place = int(gains.argmax())
        for index in np.flatnonzero((lo < place) & (place <= hi)).tolist():
            cost = costs[index]
            better = float(cost[place - lo[index] - 1])
            if better >= now[index]:
                continue
            # what each row could still save this span shrinks, now that the span costs less
            change = np.maximum(0.0, better - cost) - np.maximum(0.0, now[index] - cost)
            gains[lo[index] + 1 : hi[index] + 1] += weights[index] * change
            now[index], chosen[index] = better, place
    return [int(chosen[index]) for index in which.ravel().tolist()]


def _costs(lo: int, before: int, after: int, hi: int) -> NDArray[Any]:
    """Return the cost of each row from ``lo + 1`` to ``hi`` as the place."""
    import numpy as np

    rows = np.arange(lo + 1, hi + 1, dtype=np.float64)
    left = np.maximum(0.0, before + 1 - rows) / max(1, before - lo)
    right = np.maximum(0.0, rows - after) / max(1, hi - after)
    off: NDArray[Any] = CRITICAL * np.maximum(left, right) ** 2
    return off
