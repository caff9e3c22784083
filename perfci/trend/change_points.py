"""From a series' values to its moves: steps and slow ramps, with sizes in the metric's unit.

The best splits of many intervals are candidates. The weakest are removed one by one until every
change left is significant. What goes to another process and what comes back is small and can be
pickled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from perfci.trend import ChangeKind, TrendSettings
from perfci.trend.noise import (
    Blocks,
    LevelTest,
    Prepared,
    Split,
    Sums,
    Wander,
    compare_levels,
    cumulate,
    inflation,
    measure_blocks,
    place_interval,
    prepare,
    prepare_all,
    split_gains,
    wander_by_length,
)
from perfci.trend.ramps import Ramp, RampSplits, find_ramps

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST_SERIES = 5
"""Points below which a series is not examined."""
NOISY_SERIES = 8
"""Points below which a series with noise is not examined."""
TOGETHER = 25_000
"""Points, in series of one length, that are searched together. They fit a core's cache."""
DECAY = 1.5
LEAST = 3.3
"""Standard errors below which a candidate is dropped."""
LENIENT = 10.0
"""Times alpha. A change as sure as this is kept out of the wander, though it isn't reported."""
EXCURSION = 7
"""Runs. A shorter stay at another level that comes back is no lasting change."""


@dataclass(frozen=True, slots=True)
class SizedMove:
    """A move: indices into the series, sizes with 95 % interval, p of this series alone.

    ``within`` is (before, after) with 95 % confidence.
    ``level_before`` and ``level_after`` are in the metric's unit. ``ratio`` and its interval are
    None where some value is not positive.
    """

    kind: ChangeKind
    before: int
    after: int
    within: tuple[int, int]
    level_before: float
    level_after: float
    ratio: float | None
    ratio_lo: float | None
    ratio_hi: float | None
    p: float


def examine(values: NDArray[Any], settings: TrendSettings) -> tuple[SizedMove, ...]:
    """Return the moves of one series of finite ``values`` (n,), in order."""
    return examine_all([values], settings)[0]


def examine_all(
    many: Sequence[NDArray[Any]], settings: TrendSettings
) -> list[tuple[SizedMove, ...]]:
    """Examine a batch of series, which is one process's work.

    Series of one length are prepared and searched together, because numpy's calls cost more than so
    few points. The moves of a series don't depend on the others.
    """
    import numpy as np

    moves_of: list[tuple[SizedMove, ...]] = [()] * len(many)
    of_length: dict[int, list[int]] = {}
    for index, values in enumerate(many):
        if len(values) >= SHORTEST_SERIES and values.min() != values.max():
            of_length.setdefault(len(values), []).append(index)
    for length, indices in of_length.items():
        rows = max(1, TOGETHER // length)
        for some in (indices[at : at + rows] for at in range(0, len(indices), rows)):
            prepared = prepare_all(np.stack([many[index] for index in some]))
            for index, moves in zip(some, _examine_alike(prepared, settings), strict=True):
                moves_of[index] = moves
    return moves_of


def _examine_alike(
    many: Sequence[Prepared], settings: TrendSettings
) -> list[tuple[SizedMove, ...]]:
    """Return the moves of each of ``many`` series of one length."""
    moves_of: list[tuple[SizedMove, ...]] = [()] * len(many)
    of_shortest: dict[int, list[int]] = {}
    for index, each in enumerate(many):
        if not _too_short(each):
            of_shortest.setdefault(each.shortest, []).append(index)
    for indices in of_shortest.values():
        candidates = find_candidates([many[index] for index in indices], least=LEAST)
        for index, of_series in zip(indices, candidates, strict=True):
            moves_of[index] = tuple(find_moves(many[index], settings, of_series))
    return moves_of


def too_few(values: NDArray[Any]) -> bool:
    """Return whether finite ``values`` (n,) are too few to be examined."""
    return len(values) < SHORTEST_SERIES or (
        len(values) < NOISY_SERIES and _too_short(prepare(values))
    )


def _too_short(prepared: Prepared) -> bool:
    return len(prepared.levels) < min(NOISY_SERIES, 2 * prepared.shortest)


def find_moves(
    prepared: Prepared, settings: TrendSettings, candidates: SplitCandidates
) -> Iterator[SizedMove]:
    """Yield the moves of a series in order, each significant and large enough."""
    segmented = segment(prepared, settings.alpha, candidates)
    splits = segmented.splits
    if not splits:
        return
    sums = cumulate(prepared.cleaned)
    ramps = {stretch.first: stretch for stretch in segmented.ramps}
    index = settled = 0
    while index < len(splits):
        split = splits[index]
        stretch = ramps.get(index)
        kind: ChangeKind = "ramp" if stretch else "step"
        if stretch is None:
            begin, ends, test = split.begin, (split.place - 1, split.place), split.test
            within = place_interval(prepared, sums, split)
            index += 1
        else:
            # its old level begins where the move before it has ended; if that is a ramp that it
            # overlaps, the level is the single point before
            begin = min(max(split.begin, settled), stretch.ramp.before)
            ends = within = stretch.ramp.before, stretch.ramp.after
            test = _ramp_test(splits[index : stretch.last + 1], stretch.ramp)
            index = stretch.last + 1
        settled = ends[1]
        if abs(test.difference) >= math.log1p(settings.floor):
            yield _sized(prepared, kind, begin, ends, within, test)


def _ramp_test(splits: Sequence[Split], ramp: Ramp) -> LevelTest:
    """Return the test of several steps as one move, with the p of the surest of them."""
    surest = min((split.test for split in splits), key=lambda test: test.p)
    return LevelTest(ramp.difference, math.sqrt(ramp.variance), surest.df, surest.p)


def _sized(
    prepared: Prepared,
    kind: ChangeKind,
    begin: int,
    ends: tuple[int, int],
    within: tuple[int, int],
    test: LevelTest,
) -> SizedMove:
    """Return a move whose old level is from ``begin`` to the first of its ``ends``."""
    import numpy as np
    from scipy import special

    before = float(np.median(prepared.levels[begin : ends[0] + 1]))
    levels = before, before + test.difference
    ratios: tuple[float | None, float | None, float | None] = (None, None, None)
    if prepared.logarithmic:
        half = 0.0 if prepared.exact else float(special.stdtrit(test.df, 0.975)) * test.error
        levels = math.exp(levels[0]), math.exp(levels[1])
        low, high = test.difference - half, test.difference + half
        ratios = ratio_of(test.difference), ratio_of(low), ratio_of(high)
    else:
        levels = levels[0] * prepared.unit, levels[1] * prepared.unit
    return SizedMove(kind, *ends, within, *levels, *ratios, test.p)


def ratio_of(difference: float) -> float:
    """Return ``exp(difference)``, limited to the largest ratio of two values of a series.

    The interval of a wild series may reach further than any float.
    """
    from perfci.stats.t_tests import LARGEST

    most = 2.0 * math.log(LARGEST)
    return math.exp(min(max(difference, -most), most))


@dataclass(frozen=True, slots=True)
class Segmentation:
    """The significant splits in order, and which of them are ramps."""

    splits: tuple[Split, ...] = ()
    ramps: tuple[RampSplits, ...] = ()

    def moving(self) -> list[tuple[int, int]]:
        """Return the first and last place of each move."""
        within = {i for part in self.ramps for i in range(part.first, part.last + 1)}
        steps = [(s.place, s.place) for i, s in enumerate(self.splits) if i not in within]
        return steps + [(part.ramp.before, part.ramp.after) for part in self.ramps]


def segment(
    prepared: Prepared, alpha: float, candidates: SplitCandidates | None = None
) -> Segmentation:
    """Return the changes that are significant at ``alpha``.

    The wander is measured again without the gaps over the changes, until no more are found. Many
    steps, or a ramp, would otherwise hide behind the wander that they look like. Until then it is
    of the shortest blocks alone, as true steps move most of the long ones.
    """
    if candidates is None:
        candidates = find_candidates([prepared], least=LEAST)[0]
    if not len(candidates.places):
        return Segmentation()
    sums = cumulate(prepared.cleaned)
    blocks = None if prepared.exact else measure_blocks(prepared, sums.values)
    start = [0, *choose(candidates), len(prepared.cleaned)]
    for _ in range(2):
        for index in range(1, len(start) - 1):
            start[index] = _best_place(prepared, sums.values, start[index - 1], start[index + 1])
    wander = Wander()
    if blocks is not None:
        moving = _moving(prepared, sums, blocks, start, min(LENIENT * alpha, 0.05))
        wander = wander_by_length(prepared, sums.values, blocks, moving)
    splits = _without_weak(prepared, sums, wander, start, alpha)
    return Segmentation(splits, find_ramps(prepared, splits))


def _moving(
    prepared: Prepared, sums: Sums, blocks: Blocks, start: Sequence[int], alpha: float
) -> list[tuple[int, int]]:
    """Return what moves, at a lenient ``alpha``: the wander isn't measured there."""
    segmentation = Segmentation()
    while True:
        wander = blocks.wander(segmentation.moving())
        splits = _without_weak(prepared, sums, wander, start, alpha)
        if len(splits) > len(segmentation.splits):
            segmentation = Segmentation(
                splits, find_ramps(prepared, splits) if segmentation.ramps else ()
            )
        elif segmentation.ramps or not segmentation.splits:
            return segmentation.moving()
        else:
            segmentation = Segmentation(
                segmentation.splits, find_ramps(prepared, segmentation.splits)
            )
            if not segmentation.ramps:
                return segmentation.moving()


def choose(candidates: SplitCandidates) -> list[int]:
    """Return the strongest candidate's place, then the strongest whose interval lacks it, …."""
    chosen: list[int] = []
    left = candidates.places >= 0
    while left.any():
        place = int(candidates.places[int(left.argmax())])
        chosen.append(place)
        left &= ~((candidates.begins < place) & (place < candidates.ends))
    return sorted(chosen)


def _without_weak(
    prepared: Prepared, sums: Sums, wander: Wander, start: Sequence[int], alpha: float
) -> tuple[Split, ...]:
    bounds = list(start)

    def tested(index: int) -> LevelTest:
        begin, place, end = bounds[index : index + 3]
        return compare_levels(prepared, sums, wander, begin, place, end)

    tests = [tested(index) for index in range(len(bounds) - 2)]
    while tests:
        weakest = max(range(len(tests)), key=lambda i: (tests[i].p, -abs(tests[i].difference)))
        if tests[weakest].p <= alpha:
            weakest = _excursion(bounds, tests)
            if weakest < 0:
                break
        del bounds[weakest + 1], tests[weakest]
        for index in (weakest - 1, weakest):
            if 0 <= index < len(tests):
                bounds[index + 1] = _best_place(
                    prepared, sums.values, bounds[index], bounds[index + 2]
                )
        for index in range(max(0, weakest - 2), min(len(tests), weakest + 2)):
            tests[index] = tested(index)
    return tuple(
        Split(begin, place, end, test)
        for begin, place, end, test in zip(bounds, bounds[1:], bounds[2:], tests, strict=False)
    )


def _excursion(bounds: Sequence[int], tests: Sequence[LevelTest]) -> int:
    """Return the index of a split that opens a short stay at another level, or -1."""
    for index in range(len(tests) - 1):
        out, back = tests[index].difference, tests[index + 1].difference
        short = bounds[index + 2] - bounds[index + 1] < EXCURSION
        if short and out * back < 0 and abs(out + back) < min(abs(out), abs(back)) / 2:
            return index
    return -1


def _best_place(prepared: Prepared, sums: NDArray[Any], begin: int, end: int) -> int:
    """Return the split of begin..end with the least squared error."""
    if end - begin < 2 * prepared.shortest:
        return (begin + end) // 2
    first, last = begin + prepared.shortest, end - prepared.shortest
    gains = split_gains(sums, begin, end)[first - begin - 1 : last - begin]
    return first + int(gains.argmax())


@dataclass(frozen=True, slots=True)
class SplitCandidates:
    """The best splits of intervals, the strongest first. Each array is (k,).

    ``places`` are the first points of new levels. ``begins`` and ``ends`` bound the intervals.
    """

    places: NDArray[Any]
    begins: NDArray[Any]
    ends: NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Layer:
    length: int
    starts: NDArray[Any]
    left: NDArray[Any]


@lru_cache(maxsize=64)
def _layers(size: int, shortest: int) -> tuple[_Layer, ...]:
    import numpy as np

    made = []
    length = 2 * shortest
    while length < size:
        step = max(1, length // 3)
        starts = np.unique(np.append(np.arange(0, size - length, step), size - length))
        made.append(_Layer(length, starts, np.arange(shortest, length - shortest + 1)))
        length = max(length + 1, int(length * DECAY))
    made.append(_Layer(size, np.zeros(1, dtype=np.intp), np.arange(shortest, size - shortest + 1)))
    return tuple(made)


def find_candidates(many: Sequence[Prepared], *, least: float) -> list[SplitCandidates]:
    """Return for each of ``many`` the splits that are at least ``least`` standard errors strong.

    There is one for each interval. All have one length, and one shortest level.

    Notes
    -----
    Seeded binary segmentation: intervals of geometrically growing length that overlap by two
    thirds, so that each step has one that holds it alone (Kovács, Bühlmann, Li and Munk 2023,
    Biometrika 110:249-256). O(n log n).
    """
    import numpy as np
    from numpy.lib.stride_tricks import sliding_window_view

    cleaned = np.stack([each.cleaned for each in many])
    size = cleaned.shape[1]
    sums = np.zeros((len(many), size + 1))
    np.cumsum(cleaned - cleaned.mean(axis=1)[:, None], axis=1, out=sums[:, 1:])
    lengths = np.arange(1.0, size + 1.0)
    variance = np.zeros((len(many), size + 1))  # of a level's mean
    for row, each in enumerate(many):
        variance[row, 1:] = inflation(lengths, each.rho) / lengths
    places, strengths, begins, ends = [], [], [], []
    for layer in _layers(size, many[0].shortest):
        left, share = layer.left, variance[:, layer.left]
        first = sums[:, layer.starts, None]
        middle = sliding_window_view(sums, len(left), axis=1)[:, layer.starts + left[0]]
        middle -= first
        total = sums[:, layer.starts + layer.length, None] - first
        # the right sides are the left ones reversed; |middle/left - (total - middle)/right|
        middle -= total * (left / layer.length)
        weights = layer.length / (left * left[::-1] * np.sqrt(share + share[:, ::-1]))
        middle *= weights[:, None, :]
        strength = np.abs(middle, out=middle)
        best = strength.argmax(axis=2)
        places.append(layer.starts + left[best])
        strengths.append(np.take_along_axis(strength, best[:, :, None], axis=2)[:, :, 0])
        begins.append(layer.starts)
        ends.append(layer.starts + layer.length)
    place, begin, end = np.concatenate(places, axis=1), np.concatenate(begins), np.concatenate(ends)
    strength = np.concatenate(strengths, axis=1) / np.array([[each.sigma] for each in many])
    candidates = []
    for row in range(len(many)):
        strong = np.flatnonzero(strength[row] >= least)
        order = strong[np.argsort(-strength[row, strong], kind="stable")]
        candidates.append(SplitCandidates(place[row, order], begin[order], end[order]))
    return candidates
