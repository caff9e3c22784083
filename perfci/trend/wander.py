"""Noise that wanders: how far neighbouring blocks of nights differ beyond what AR(1) explains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.trend.noise import Prepared, inflation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LARGEST_BLOCK = 30
"""Nights."""
BLOCKS = 36
"""Blocks that a series is made of: enough for a median that a handful of steps does not move."""

_NORMAL = 0.6744897501960817


@dataclass(frozen=True, slots=True)
class Wander:
    """A variance that every difference of two levels has on top, and its degrees of freedom."""

    variance: float = 0.0
    df: float = 1.0


@dataclass(frozen=True, slots=True)
class Blocks:
    """``gaps`` (n - 2 size + 1,): |mean of the next block - mean of this one|, at every offset.

    ``expected`` is the variance that such a gap has by AR(1) noise alone.
    """

    gaps: NDArray[Any]
    size: int
    expected: float

    def wander(self, moving: Sequence[tuple[int, int]] = ()) -> Wander:
        """Return the wander, leaving out the gaps over each first..last place that moved.

        The median makes it robust to a few steps that are not known yet. A series whose
        level moves all the time by itself thus has to jump further before it is a change.
        """
        import numpy as np

        kept = np.ones(len(self.gaps), dtype=bool)
        for first, last in moving:
            kept[max(0, first - 2 * self.size + 1) : last] = False
        count = int(np.count_nonzero(kept))
        if count < self.size:
            return Wander()
        scale = float(np.median(self.gaps[kept])) / _NORMAL
        return Wander(max(0.0, scale * scale - self.expected), max(2.0, count / self.size))


def measure_blocks(prepared: Prepared, sums: NDArray[Any]) -> Blocks:
    """Return the gaps between neighbouring blocks; ``sums`` (n + 1,) are cumulated from 0.

    Notes
    -----
    ``Var(next - this) = 4 Var(mean of b) - 4 Var(mean of 2b)`` for any stationary noise.
    """
    import numpy as np

    size = max(2, min(LARGEST_BLOCK, (len(sums) - 1) // BLOCKS))
    means = (sums[size:] - sums[:-size]) / size
    one = float(inflation(float(size), prepared.rho)) / size
    two = float(inflation(float(2 * size), prepared.rho)) / (2 * size)
    return Blocks(
        gaps=np.abs(means[size:] - means[:-size]),
        size=size,
        expected=prepared.sigma**2 * 4.0 * (one - two),
    )
