"""The noise of a series whose level may move, and how sure it is that two levels differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from perfci.stats.t_tests import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WINDOW = 7
"""Width in runs of the moving median that each run is compared with. The run itself counts."""
ODD = 4.0
"""A run is odd if it is more than this many scales from its moving median."""
SMALLEST_SCALE = 0.0005
"""Least noise, as a share of the level, so that a difference in the last digit isn't a change."""
LARGEST_RHO = 0.8
"""Upper limit of the estimate of rho, the autocorrelation at lag 1."""
SHIFT = 0.5
"""The estimate of rho is raised by this much ÷ √n. Too small a rho makes false alarms, too large a
rho costs little. From docs/results/trend-noise.md."""
_NORMAL = 0.6744897501960817
"""The median of |x| for standard normal x."""
_TRIM = 0.1
"""Share of the differences, from the largest down, that is left out of their mean square."""
_STEPS = 2
"""Steps that even the shortest series may have without an effect on its estimated noise."""
# Noise that wanders: how far neighbouring blocks of runs differ beyond what AR(1) explains.
LARGEST_BLOCK = 30
"""Upper limit of the shortest block length, in runs."""
HALVED_BLOCK = 16
"""If the shortest blocks have at least this many runs, blocks of half that are measured too."""
BLOCKS = 36
"""Number of the shortest blocks in a series. A handful of steps doesn't move their median."""
SHORT_SERIES_BLOCK, SHORT_SERIES_BLOCKS = 8, 15
"""In a short series, the shortest blocks have 8 runs, or a 15th of its runs if these are fewer. In
shorter blocks, modes and swings would look like changes."""
GROWTH = 2.0
"""Factor from one block length to the next."""
FEWEST_BLOCKS = 8
"""A block length is used only if the series holds at least this many blocks of it."""
FEWEST_DF = 6.0
"""A block length is used only if its blocks have at least this many degrees of freedom."""
LEAST_LEFT = 0.5
"""The wander at the next block length is at least this share of what white noise would have."""
PRIOR = 20.0
"""Weight of the series' variance in the variance of a stretch: that of this many points."""
LOCAL_RUNS = 30
"""Least number of runs around a stretch whose noise is compared with the series'."""
LOUDER = 1.3
"""The noise around a stretch counts if it is more than this many times the series' noise."""
# Fitted to docs/results/trend-noise.md: in a quiet series of 16 to 1,500 points a false
# change is about as rare as alpha says. Series of fewer than 100 points with strong autocorrelation
# are the exception.
SEARCHES = 40.0
"""Independent places that the search through 365 points amounts to."""
FEWEST_SEARCHES = 2.0
"""The same number for the shortest series."""
DF_SHARE = 0.25
"""A test has at most this many degrees of freedom for each effective point, and ``DF_BASE`` more,
because rho and sigma are estimates too."""
DF_BASE = 4.0
"""See ``DF_SHARE``."""
# A confidence set for the place of a step: the place that fits best need not be the true one.
CRITICAL = -2.0 * math.log(1.0 - math.sqrt(0.95))
"""7.35: the 95th percentile of twice the log likelihood ratio of the best place to the true one."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A series ready to be segmented.

    ``levels`` (n,) are logarithms where all values are positive (``logarithmic``), else shares
    of the largest magnitude ``unit``. ``cleaned`` (n,) are the levels with odd runs replaced.
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
    variances: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    """Results of ``_stretch_variance``, because most stretches are tested several times."""
    places: dict[tuple[int, int], int] = field(default_factory=dict)
    """Best splits of stretches, for the same reason."""

    @property
    def shortest(self) -> int:
        """Least number of points in a level. An exact value that occurs twice is deliberate."""
        return 2 if self.exact else 4

    @cached_property
    def sums(self) -> NDArray[Any]:
        """Cumulated sums (n + 1,) of the centred points, from 0."""
        return _cumulated(self.cleaned - self.cleaned.mean())

    @cached_property
    def squares(self) -> NDArray[Any]:
        """Cumulated squares (n + 1,) of the centred points, from 0."""
        return _cumulated((self.cleaned - self.cleaned.mean()) ** 2)

    @cached_property
    def differences(self) -> NDArray[Any]:
        """Cumulated magnitudes (n,) of the differences of neighbouring points, from 0.

        Each magnitude is limited to ``ODD`` times the noise, so that a step counts little.
        """
        import numpy as np

        return _cumulated(np.minimum(np.abs(np.diff(self.cleaned)), ODD * self.sigma))

    def mean(self, begin: int, end: int) -> float:
        """Return the mean of the centred points from ``begin`` up to ``end``, not included."""
        return float(self.sums[end] - self.sums[begin]) / (end - begin)

    def spread(self, begin: int, end: int) -> float:
        """Return the sum of squares around the mean of the points from ``begin`` up to ``end``."""
        total = float(self.sums[end] - self.sums[begin])
        squares = float(self.squares[end] - self.squares[begin])
        return max(0.0, squares - total * total / (end - begin))


def _cumulated(values: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.concatenate([[0.0], np.cumsum(values)])


def prepare(values: NDArray[Any]) -> Prepared:
    """Transform, clean and measure the noise of ``values`` (n,), n ≥ 4."""
    return prepare_all(values[None, :])[0]


def prepare_all(values: NDArray[Any]) -> list[Prepared]:
    """Prepare each row of ``values`` (k, n) by itself."""
    import numpy as np

    logarithmic = values.min(axis=1) > 0.0
    largest = np.abs(values).max(axis=1)
    unit = np.where(logarithmic | (largest == 0.0), 1.0, largest)
    levels = values / unit[:, None]
    levels[logarithmic] = np.log(values[logarithmic])
    differences = np.abs(np.diff(levels))
    exact = np.count_nonzero(differences, axis=1) <= 2 + levels.shape[1] // 20
    local = np.median(differences, axis=1) / (_NORMAL * np.sqrt(2.0))
    still = (local == 0.0) & ~exact  # most runs repeat the last value, but the others are noise
    local[still] = np.sqrt(_trimmed(differences[still]) / 2.0)
    cleaned = _without_outliers(levels, np.maximum(local, SMALLEST_SCALE), mirrored=exact)
    sigma, rho = _scale_and_correlation(cleaned)
    sigma[exact], rho[exact] = SMALLEST_SCALE, 0.0
    columns = (column.tolist() for column in (sigma, rho, logarithmic, unit, exact))
    rows = zip(levels, cleaned, *columns, strict=True)
    return [Prepared(*fields) for fields in rows]


def _without_outliers(
    levels: NDArray[Any], scale: NDArray[Any], *, mirrored: NDArray[Any]
) -> NDArray[Any]:
    """Replace each point that is more than ``ODD`` scales off its moving median by the median.

    Up to three odd runs in a row thus don't make a level of their own, while a step keeps its place
    and size. The first three points are compared with the median of the first seven, the last three
    with that of the last seven. In ``mirrored`` rows the window is mirrored at the ends instead, so
    that two equal newest runs make a level and a single one does not. (Hampel's filter: Pearson
    2002, IEEE Transactions on Control Systems Technology 10:55-63.)
    """
    import numpy as np

    # the window's width is odd, or it would lean to one side
    half = min(WINDOW, (levels.shape[1] - 1) // 2 * 2 + 1) // 2
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
    differences at lag k. The largest tenth of the differences is trimmed, and at least as many as
    two steps touch. A step that is left in at lag 2 alone would be taken for correlation, and hide
    behind it.
    """
    import numpy as np

    lag_1 = _trimmed(np.diff(cleaned), _STEPS)
    lag_2 = _trimmed(cleaned[:, 2:] - cleaned[:, :-2], 2 * _STEPS)
    still = lag_1 <= 0.0
    lag_1[still] = lag_2[still] = 1.0
    rho = np.clip(lag_2 / lag_1 - 1.0 + SHIFT / np.sqrt(cleaned.shape[1]), 0.0, LARGEST_RHO)
    sigma = np.maximum(np.sqrt(lag_1 / 2.0 / (1.0 - rho)), SMALLEST_SCALE)
    sigma[still], rho[still] = SMALLEST_SCALE, 0.0
    return sigma, rho


def _trimmed(differences: NDArray[Any], least: int = 0) -> NDArray[Any]:
    """Estimate the mean square of each row of normal ``differences`` from all but the largest.

    A tenth of the differences is left out, but at least ``least`` of them and at most half. If a
    share ``s`` is kept, the kept differences are below ``q = Φ⁻¹((1 + s)/2)`` standard deviations,
    and their squares are ``s - 2 q φ(q)`` of the sum of all squares.
    """
    import numpy as np

    count = differences.shape[1]
    kept = count - min(max(int(_TRIM * count), least), count // 2)
    smallest = np.partition(differences * differences, kept - 1, axis=1)[:, :kept]
    means: NDArray[Any] = smallest.sum(axis=1) / count / _kept(kept / count)
    return means


@cache
def _kept(share: float) -> float:
    """Return the part of the sum of squared standard normals that the smallest ``share`` have."""
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


@dataclass(frozen=True, slots=True)
class Wander:
    """A variance that is added to every difference of two levels, and its degrees of freedom.

    ``by_length`` has pairs of a block length and a variance, the shortest length first. The
    variance is that of the difference of two neighbouring blocks beyond what AR(1) explains.
    """

    by_length: tuple[tuple[int, float], ...] = ()
    df: float = 1.0

    def variance(self, *runs: int) -> float:
        """Return the added variance of the difference of two levels that are ``runs`` long.

        Each level contributes half the variance of blocks of about its length. The length matters:
        a cycle of 20 nights hardly moves the mean of 180, and a slow swing of 300 nights hardly
        moves blocks of 10.
        """
        return sum(map(self._at_length, runs)) / 2.0

    def _at_length(self, runs: int) -> float:
        fitting = [variance for size, variance in self.by_length[1:] if size <= runs]
        return (fitting or [variance for _, variance in self.by_length[:1]] or [0.0])[-1]


@dataclass(frozen=True, slots=True)
class Blocks:
    """``gaps`` (n - 2 size + 1,): |mean of the next block - mean of this one|, at every offset.

    ``expected`` is the variance that such a gap has by AR(1) noise alone. ``half`` are blocks of
    half the size, if ``size`` is large: blocks as long as a cycle's period would average it out.
    """

    gaps: NDArray[Any]
    size: int
    expected: float
    half: Blocks | None = None

    def wander(self, moving: Sequence[tuple[int, int]] = ()) -> Wander:
        """Return the wander, without the gaps across a move. ``moving`` has first and last places.

        The median makes the wander robust to a few steps that are not known yet. A series whose
        level moves all the time by itself thus has to jump further before a jump is a change.
        """
        import numpy as np

        kept = np.ones(len(self.gaps), dtype=bool)
        for first, last in moving:
            kept[max(0, first - 2 * self.size + 1) : last] = False
        gaps = self.gaps[kept] if moving else self.gaps
        count = len(gaps)
        if count < self.size:
            return Wander()
        scale = float(np.median(gaps)) / _NORMAL
        variance = max(0.0, scale * scale - self.expected)
        shorter = self.half.wander(moving).by_length if self.half else ()
        by_length = [(size, max(variance, halves)) for size, halves in shorter]
        return Wander((*by_length, (self.size, variance)), max(2.0, count / self.size))


def wander_by_length(
    prepared: Prepared, shortest: Blocks, moving: Sequence[tuple[int, int]]
) -> Wander:
    """Return the wander of blocks of growing length, from the ``shortest`` blocks on.

    Notes
    -----
    Allan's variance at octaves (Allan 1966, Proceedings of the IEEE 54:221-230), by a median. The
    degrees of freedom are those of the shortest blocks, because all lengths share their runs. With
    few long blocks a median is often too small by chance. So each length has at least
    ``LEAST_LEFT`` of what white noise would leave.
    """
    shortest_wander = shortest.wander(moving)
    by_length = list(shortest_wander.by_length)
    count, size = len(prepared.cleaned), shortest.size
    while by_length and count >= FEWEST_BLOCKS * (size := round(GROWTH * size)):
        longer = measure_blocks(prepared, size).wander(moving)
        if longer.df < FEWEST_DF:
            break
        shorter, variance = by_length[-1]
        by_length.append(
            (size, max(longer.variance(size, size), LEAST_LEFT * variance * shorter / size))
        )
    return Wander(tuple(by_length), shortest_wander.df)


def measure_blocks(prepared: Prepared, size: int = 0) -> Blocks:
    """Return the gaps between neighbouring blocks of ``size`` runs. 0: the shortest length.

    Notes
    -----
    ``Var(next - this) = 4 Var(mean of b) - 4 Var(mean of 2b)`` for any stationary noise.
    """
    import numpy as np

    half = None
    if not size:
        runs = len(prepared.cleaned)
        longer = min(SHORT_SERIES_BLOCK, runs // SHORT_SERIES_BLOCKS)
        size = max(2, min(LARGEST_BLOCK, max(runs // BLOCKS, longer)))
        half = measure_blocks(prepared, size // 2) if size >= HALVED_BLOCK else None
    means = (prepared.sums[size:] - prepared.sums[:-size]) / size
    block_variance = float(inflation(float(size), prepared.rho)) / size
    pair_variance = float(inflation(float(2 * size), prepared.rho)) / (2 * size)
    return Blocks(
        gaps=np.abs(means[size:] - means[:-size]),
        size=size,
        expected=prepared.sigma**2 * 4.0 * (block_variance - pair_variance),
        half=half,
    )


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


def split_gains(prepared: Prepared, begin: int, end: int) -> NDArray[Any]:
    """Return by how much each split of begin..end lowers the sum of squares, (end - begin - 1,)."""
    import numpy as np

    sums = prepared.sums
    left = np.arange(1, end - begin)
    right = end - begin - left
    middle = sums[begin + 1 : end]
    gap = (middle - sums[begin]) / left - (sums[end] - middle) / right
    gains: NDArray[Any] = gap * gap * left * right / (end - begin)
    return gains


def compare_levels(
    prepared: Prepared,
    wander: Wander,
    old: tuple[int, int],
    new: tuple[int, int],
    *,
    searched: bool,
) -> LevelTest:
    """Test the points of the stretch ``new`` against those of ``old``. Both are begin and end.

    Without ``searched``, the place was known before, and p is not adjusted for a search.

    Notes
    -----
    Welch's t with three variances. Each side has its own, pooled with the series' as if the series
    were ``PRIOR`` further points, and inflated for AR(1). The third is the wander's. Degrees of
    freedom by Satterthwaite (1946, Biometrics Bulletin 2:110-114), counting effective points.
    """
    var_old, df_old = _stretch_variance(prepared, *old)
    var_new, df_new = _stretch_variance(prepared, *new)
    wandered = wander.variance(old[1] - old[0], new[1] - new[0])
    variance = var_old + var_new + wandered
    parts = var_old**2 / df_old + var_new**2 / df_new + wandered**2 / wander.df
    df = variance**2 / parts
    difference = prepared.mean(*new) - prepared.mean(*old)
    error = math.sqrt(variance)
    p = place_p(prepared, difference / error, df, searched=searched)
    return LevelTest(difference, error, df, p)


def place_p(prepared: Prepared, t: float, df: float, *, searched: bool) -> float:
    """Return the two-sided p of Student's ``t``, adjusted where the place was ``searched`` for.

    Notes
    -----
    ``p`` times the number of independent places, as Bonferroni does. This number grows faster than
    the number of effective points, because a level has two ends. The factors are fitted to a
    simulation; no theory gives them.
    """
    from scipy import special

    count = len(prepared.cleaned)
    effective = (1.0 - prepared.rho) / (1.0 + prepared.rho)
    searches: float = max(FEWEST_SEARCHES, SEARCHES * (count * math.sqrt(effective) / 365.0) ** 1.5)
    if not prepared.exact:
        df = min(df, DF_BASE + DF_SHARE * count * effective)
    tail = float(special.stdtr(df, -abs(t)))
    return min(1.0, (searches if searched else 1.0) * 2.0 * tail)


def _stretch_variance(prepared: Prepared, begin: int, end: int) -> tuple[float, float]:
    """Return the variance of the mean of a stretch, and this variance's degrees of freedom."""
    if (known := prepared.variances.get((begin, end))) is not None:
        return known
    count = end - begin
    inflated = float(inflation(float(count), prepared.rho))
    weight = PRIOR + count - 1
    noise = PRIOR * _local_sigma(prepared, begin, end) ** 2
    pooled = (noise + prepared.spread(begin, end)) / weight
    prepared.variances[begin, end] = pooled * inflated / count, weight / inflated
    return prepared.variances[begin, end]


def _local_sigma(prepared: Prepared, begin: int, end: int) -> float:
    """Return the noise around a stretch: the series' own ``sigma``, unless the stretch is louder.

    For AR(1) noise the mean |difference| is 2σ √((1 - ρ) / π).
    """
    middle, reach = (begin + end) // 2, max(LOCAL_RUNS, end - begin) // 2
    first, last = max(0, middle - reach), min(len(prepared.cleaned) - 1, middle + reach)
    if prepared.exact or last <= first:
        return prepared.sigma
    mean = float(prepared.differences[last] - prepared.differences[first]) / (last - first)
    expected = 2.0 * prepared.sigma * math.sqrt((1.0 - prepared.rho) / math.pi)
    louder = mean / expected
    return prepared.sigma * (louder if louder > LOUDER else 1.0)


def place_interval(prepared: Prepared, split: Split) -> tuple[int, int]:
    """Return the last point of the old level and the first of the new one, with 95 % confidence.

    For an exact series these are the two points at the split itself.

    Notes
    -----
    From the first to the last place whose likelihood is not far below the best place's: Eo and
    Morley (2015, Quantitative Economics 6:463-497), after Siegmund (1988, Annals of Statistics
    16:1355-1371), whose P(LR ≤ x) = (1 - exp(-x/2))². The variance is the long-run variance of
    AR(1).
    """
    import numpy as np

    if prepared.exact:
        return split.place - 1, split.place
    gains = split_gains(prepared, split.begin, split.end)
    likely = np.flatnonzero(
        gains[split.place - split.begin - 1] - gains <= CRITICAL * _variance(prepared, split)
    )
    return split.begin + int(likely[0]), split.begin + int(likely[-1]) + 1


def _variance(prepared: Prepared, split: Split) -> float:
    """Return the noise's long-run variance: that of both stretches, pooled with the series'."""
    within = prepared.spread(split.begin, split.place) + prepared.spread(split.place, split.end)
    points = split.end - split.begin
    pooled = (PRIOR * prepared.sigma**2 + within) / (PRIOR + points - 2)
    return pooled * float(inflation(float(points), prepared.rho))


def ratio_of(difference: float) -> float:
    """Return ``exp(difference)``, limited to the largest ratio of two values of a series.

    Without the limit, the interval of a very noisy series could overflow.
    """
    most = 2.0 * math.log(LARGEST)
    return math.exp(min(max(difference, -most), most))
