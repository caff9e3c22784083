"""The noise of a series whose level may move: its scale, its autocorrelation, its outliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


WINDOW = 7
ODD = 4.0
"""Scales off the runs around it: an odd run."""

SMALLEST_SCALE = 0.0005
"""A share of the level: noise is taken for at least this much, so that no digit is a change."""

LARGEST_RHO = 0.8
SHIFT = 0.5
"""By how many 1/√n the estimate of rho is raised: too small a rho makes false alarms, too large a
one costs little. From benchmarks/trend/critical_values.py."""
_NORMAL = 0.6744897501960817
_TRIM = 0.1
_STEPS = 2
"""So many steps may be in the shortest series without an effect on its noise."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A series ready to be segmented.

    ``levels`` (n,) are logarithms where all values are positive (``logarithmic``), else shares
    of the largest magnitude ``unit``; ``cleaned`` (n,) the same without odd runs.
    ``sigma`` is the marginal standard deviation around the level, ``rho`` its lag-1
    autocorrelation, both robust to steps. ``exact``: nearly every run repeats the last value to
    the last digit, as counts and bytes do.
    """

    levels: NDArray[Any]
    cleaned: NDArray[Any]
    sigma: float
    rho: float
    logarithmic: bool
    unit: float
    exact: bool

    @property
    def shortest(self) -> int:
        """Points that a level has at least: an exact value that is there twice is meant."""
        return 2 if self.exact else 4


def prepare(values: NDArray[Any]) -> Prepared:
    """Transform, clean and measure the noise of ``values`` (n,), n ≥ 4."""
    return prepare_all(values[None, :])[0]


def prepare_all(values: NDArray[Any]) -> list[Prepared]:
    """Do so for each row of ``values`` (k, n): what a row gives doesn't depend on the others."""
    import numpy as np

    logarithmic = values.min(axis=1) > 0.0
    largest = np.abs(values).max(axis=1)
    unit = np.where(logarithmic | (largest == 0.0), 1.0, largest)
    levels = values / unit[:, None]
    levels[logarithmic] = np.log(values[logarithmic])
    differences = np.abs(np.diff(levels))
    exact = np.count_nonzero(differences, axis=1) <= 2 + levels.shape[1] // 20
    local = np.median(differences, axis=1) / (_NORMAL * np.sqrt(2.0))
    still = (local == 0.0) & ~exact  # most runs repeat the last value, but noise it is
    local[still] = np.sqrt(_trimmed(differences[still]) / 2.0)
    cleaned = _without_outliers(levels, np.maximum(local, SMALLEST_SCALE), mirrored=exact)
    sigma, rho = _scale_and_correlation(cleaned)
    sigma[exact], rho[exact] = SMALLEST_SCALE, 0.0
    numbers = zip(*(one.tolist() for one in (sigma, rho, logarithmic, unit, exact)), strict=True)
    return [Prepared(levels[row], cleaned[row], *of_row) for row, of_row in enumerate(numbers)]


def _without_outliers(
    levels: NDArray[Any], scale: NDArray[Any], *, mirrored: NDArray[Any]
) -> NDArray[Any]:
    """Replace each point more than ``ODD`` scales off the median of the seven around it by that.

    Up to three odd runs in a row are thus no level of their own, while a step stays where and
    as large as it is. The first and last three points have the first and last seven around
    them; in rows that are ``mirrored``, the window is mirrored at the ends instead, so that already
    two equal newest runs make a level and one does not. (Hampel's filter: Pearson 2002, IEEE
    Transactions on Control Systems Technology 10:55-63.)
    """
    import numpy as np

    half = min(WINDOW, (levels.shape[1] - 1) // 2 * 2 + 1) // 2  # odd, or it would lean to one side
    padded = np.pad(levels, ((0, 0), (half, half)), mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=1)
    middle = np.partition(windows, half, axis=2)[:, :, half]
    ends = WINDOW // 2
    middle[~mirrored, :ends] = np.median(levels[~mirrored, :WINDOW], axis=1)[:, None]
    middle[~mirrored, -ends:] = np.median(levels[~mirrored, -WINDOW:], axis=1)[:, None]
    return np.where(np.abs(levels - middle) > ODD * scale[:, None], middle, levels)


def _scale_and_correlation(cleaned: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return each row's sigma and rho of AR(1) noise, from the differences at lag 1 and 2.

    Notes
    -----
    For AR(1), ``E (x[t+k] - x[t])² = 2 σ² (1 - ρ^k)``, so the ratio of lag 2 to lag 1 is ``1 + ρ``
    (Chakar, Lebarbier, Lévy-Leduc and Robin 2017, Bernoulli 23:1408-1447). A step touches k of the
    differences at lag k. The largest tenth is trimmed, and never fewer than two steps touch: one
    that is left in at lag 2 alone would be taken for correlation, and hide behind it.
    """
    import numpy as np

    one = _trimmed(np.diff(cleaned), _STEPS)
    two = _trimmed(cleaned[:, 2:] - cleaned[:, :-2], 2 * _STEPS)
    still = one <= 0.0
    one[still] = two[still] = 1.0
    rho = np.clip(two / one - 1.0 + SHIFT / np.sqrt(cleaned.shape[1]), 0.0, LARGEST_RHO)
    sigma = np.maximum(np.sqrt(one / 2.0 / (1.0 - rho)), SMALLEST_SCALE)
    sigma[still], rho[still] = SMALLEST_SCALE, 0.0
    return sigma, rho


def _trimmed(differences: NDArray[Any], least: int = 0) -> NDArray[Any]:
    """Return the mean square of each row of normal ``differences`` from all but the largest.

    A tenth of them is left out, ``least`` of them at the least; half at the most. With a share
    ``s`` kept, those are below ``q = Φ⁻¹((1 + s)/2)``, and ``s - 2 q φ(q)`` of the whole.
    """
    import numpy as np

    count = differences.shape[1]
    kept = count - min(max(int(_TRIM * count), least), count // 2)
    smallest = np.partition(differences * differences, kept - 1, axis=1)[:, :kept]
    means: NDArray[Any] = smallest.sum(axis=1) / count / _kept(kept / count)
    return means


@cache
def _kept(share: float) -> float:
    """Return what the smallest ``share`` of squared standard normals have of the sum of all."""
    if share >= 1.0:
        return 1.0
    normal = NormalDist()
    largest = normal.inv_cdf((1.0 + share) / 2.0)
    return share - 2.0 * largest * normal.pdf(largest)


def inflation(count: NDArray[Any] | float, rho: float) -> NDArray[Any] | float:
    """Return Var(mean of ``count`` points of AR(1)) · count ÷ σ²: 1 for independent noise."""
    if rho <= 0.0:
        return count * 0.0 + 1.0
    return 1.0 + 2.0 * rho / (1.0 - rho) * (1.0 - (1.0 - rho**count) / (count * (1.0 - rho)))


# Noise that wanders: how far neighbouring blocks of runs differ beyond what AR(1) explains.

LARGEST_BLOCK = 30
"""Runs, of the shortest blocks."""
BLOCKS = 36
"""Blocks that a series is made of: enough for a median that a handful of steps does not move."""
GROWTH = 2.0
"""From one length of blocks to the next. benchmarks/trend/wander.py compares 1.5, 2 and 3."""
FEWEST_BLOCKS = 8
"""Blocks of a length, and degrees of freedom: of fewer a median says too little."""
FEWEST_DF = 6.0
LEAST_LEFT = 0.5
"""Of the wander that white noise would have at the next length: a cycle may leave less."""


@dataclass(frozen=True, slots=True)
class Wander:
    """A variance that every difference of two levels has on top, and its degrees of freedom.

    ``by_length`` has for blocks of so many runs, the shortest first, by how much the difference of
    two neighbouring ones varies beyond what AR(1) explains.
    """

    by_length: tuple[tuple[int, float], ...] = ()
    df: float = 1.0

    def variance(self, *runs: int) -> float:
        """Return the variance of the difference of two levels of so many ``runs`` each.

        Each level has half of what blocks vary by that are about as long: of a cycle of 20 nights
        little is left in 180, a slow swing of 300 moves blocks of 10 little.
        """
        return sum(map(self._of, runs)) / 2.0

    def _of(self, runs: int) -> float:
        fitting = [variance for size, variance in self.by_length[1:] if size <= runs]
        return (fitting or [variance for _, variance in self.by_length[:1]] or [0.0])[-1]


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
        variance = max(0.0, scale * scale - self.expected)
        return Wander(((self.size, variance),), max(2.0, count / self.size))


def wander_by_length(
    prepared: Prepared, sums: NDArray[Any], shortest: Blocks, moving: Sequence[tuple[int, int]]
) -> Wander:
    """Return the wander of blocks of growing length, from the ``shortest`` blocks on.

    Notes
    -----
    Allan's variance at octaves (Allan 1966, Proceedings of the IEEE 54:221-230), by a median. The
    degrees of freedom are the shortest blocks': all lengths share their runs. With few long blocks
    a median is often too small by chance, so that at least ``LEAST_LEFT`` is left of what white
    noise would leave.
    """
    found = shortest.wander(moving)
    by_length = list(found.by_length)
    count, size = len(sums) - 1, shortest.size
    while by_length and count >= FEWEST_BLOCKS * (size := round(GROWTH * size)):
        longer = measure_blocks(prepared, sums, size).wander(moving)
        if longer.df < FEWEST_DF:
            break
        shorter, variance = by_length[-1]
        by_length.append(
            (size, max(longer.variance(size, size), LEAST_LEFT * variance * shorter / size))
        )
    return Wander(tuple(by_length), found.df)


def measure_blocks(prepared: Prepared, sums: NDArray[Any], size: int = 0) -> Blocks:
    """Return the gaps between neighbouring blocks of ``size`` runs; of the shortest by default.

    ``sums`` (n + 1,) are cumulated from 0.

    Notes
    -----
    ``Var(next - this) = 4 Var(mean of b) - 4 Var(mean of 2b)`` for any stationary noise.
    """
    import numpy as np

    size = size or max(2, min(LARGEST_BLOCK, (len(sums) - 1) // BLOCKS))
    means = (sums[size:] - sums[:-size]) / size
    one = float(inflation(float(size), prepared.rho)) / size
    two = float(inflation(float(2 * size), prepared.rho)) / (2 * size)
    return Blocks(
        gaps=np.abs(means[size:] - means[:-size]),
        size=size,
        expected=prepared.sigma**2 * 4.0 * (one - two),
    )
