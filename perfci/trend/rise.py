"""The one straight rise, flat before and after it, that fits points best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST_RAMP = 12
"""Points: what rises faster is a step."""

_GRID = 14


@dataclass(frozen=True, slots=True)
class Ramp:
    """Flat up to ``before``, then straight to ``after``, then flat; ``variance`` of the difference.

    ``error`` is the sum of squares around it.
    """

    before: int
    after: int
    difference: float
    variance: float
    error: float


def fit_ramp(points: NDArray[Any]) -> Ramp | None:
    """Fit flat, straight, flat to ``points`` (n,) by least squares; None where there is no room.

    ``variance`` of the result is for independent noise of variance 1. First on a coarse grid of
    beginnings and ends, then twice on a finer one around the best.
    """
    import numpy as np

    size = len(points)
    if size < SHORTEST_RAMP + 2:
        return None
    centred = points - points.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    moments = np.concatenate([[0.0], np.cumsum(np.arange(size) * centred)])
    squares = float(centred @ centred)
    step = max(1, size // _GRID)
    begins = np.arange(0, size - SHORTEST_RAMP, step)
    ends = np.arange(SHORTEST_RAMP, size, step)
    while True:
        best = _best(sums, moments, squares, begins, ends)
        if best is None or step == 1:
            return best
        finer = max(1, step // 5)
        around = np.arange(-step, step + 1, finer)
        begins = np.unique(np.clip(best.before + around, 0, size - 1 - SHORTEST_RAMP))
        ends = np.unique(np.clip(best.after + around, SHORTEST_RAMP, size - 1))
        step = finer


def _best(
    sums: NDArray[Any],
    moments: NDArray[Any],
    squares: float,
    begins: NDArray[Any],
    ends: NDArray[Any],
) -> Ramp | None:
    """The least squared error over all pairs of a beginning and an end.

    ``sums`` and ``moments`` (n + 1,) are the cumulated centred points x, and t x.

    Notes
    -----
    Points are ``a + d s`` with the share ``s = clip((t - begin) / (end - begin), 0, 1)``: linear
    in a and d, so ``d = S_sx / S_ss`` and the error ``S_xx - S_sx² / S_ss`` of centred sums. All
    of them come from the cumulated ones, so that a pair costs the same for any number of points.
    """
    import numpy as np

    begin, end = (axis.ravel() for axis in np.meshgrid(begins, ends))
    roomy = end - begin >= SHORTEST_RAMP
    begin, end = begin[roomy], end[roomy]
    if not len(begin):
        return None
    size, width = len(sums) - 1, (end - begin).astype(float)
    risen = size - 1.0 - end
    rise = moments[end + 1] - moments[begin + 1] - begin * (sums[end + 1] - sums[begin + 1])
    with_points = rise / width + sums[-1] - sums[end + 1]
    total = (width + 1.0) / 2.0 + risen
    own = (width + 1.0) * (2.0 * width + 1.0) / (6.0 * width) + risen - total * total / size
    explained = with_points * with_points / own
    best = int(explained.argmax())
    return Ramp(
        before=int(begin[best]),
        after=int(end[best]),
        difference=float(with_points[best] / own[best]),
        variance=float(1.0 / own[best]),
        error=max(0.0, squares - float(explained[best])),
    )
