"""Find the moves of a series: steps and slow ramps, with sizes in the metric's unit.

A *split* is a place where the level changes. A *step* is a single split. A *ramp* is one or more
splits that a slope explains better. Steps and ramps are *moves*: each becomes a change of the
history. The *wander* is how much the levels of a steady series differ beyond its noise.

The best splits of many intervals are candidates. The weakest are removed one by one until every
split left is significant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from perfci.trend import ChangeKind, Move, TrendSettings
from perfci.trend.noise import (
    Blocks,
    LevelTest,
    Prepared,
    Split,
    Wander,
    compare_levels,
    inflation,
    measure_blocks,
    place_interval,
    place_p,
    prepare,
    prepare_all,
    ratio_of,
    split_gains,
    wander_by_length,
)
from perfci.trend.slow_moves import Ramp, RampSplits, find_ramps

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST_SERIES = 5
"""Points below which a series is not examined."""
NOISY_SERIES = 8
"""Points below which a series with noise is not examined."""
TOGETHER = 25_000
"""Points that are searched in one batch, from series of one length. They fit a core's cache."""
INTERVAL_GROWTH = 1.5
"""Factor from the interval length of one layer to that of the next."""
WEAKEST_CANDIDATE = 3.3
"""Standard errors below which a candidate is dropped."""
STRONGEST_CANDIDATE = 4.0
"""Standard errors that a series' strongest candidate must have, or the series has no candidate."""
LENIENT = 10.0
"""The wander isn't measured across a change whose p is at most this times alpha, even if the change
isn't reported."""
FRESH = 14
"""A change may be held back while its new level has at most this many runs."""
TURNING = 3
"""A new change is held back if this many further runs at the old level could undo it."""
NEAR_KNOWN = 5
"""Runs. A split at most this far from a known change's place counts as the known change."""
EXCURSION = 7
"""Runs. A shorter stay at another level isn't a lasting change if the old level then returns."""


def examine_all(
    many: Sequence[NDArray[Any]],
    settings: TrendSettings,
    known: Sequence[Sequence[int]] = (),
) -> list[tuple[Move, ...]]:
    """Return the moves of each series of finite values (n,), in order.

    Series of one length are prepared and searched together, because one series is too short to
    outweigh the cost of numpy's calls. The moves of a series don't depend on the others. ``known``
    has for each series the places of the steps that earlier reports named.
    """
    import numpy as np

    moves_of: list[tuple[Move, ...]] = [()] * len(many)
    by_length: dict[int, list[int]] = {}
    for index, values in enumerate(many):
        if len(values) >= SHORTEST_SERIES and values.min() != values.max():
            by_length.setdefault(len(values), []).append(index)
    for length, indices in by_length.items():
        rows = max(1, TOGETHER // length)
        for batch in (indices[at : at + rows] for at in range(0, len(indices), rows)):
            prepared = prepare_all(np.stack([many[index] for index in batch]))
            by_shortest_level: dict[int, list[tuple[int, Prepared]]] = {}
            for index, each in zip(batch, prepared, strict=True):
                if not _too_short(each):
                    by_shortest_level.setdefault(each.shortest, []).append((index, each))
            for alike in by_shortest_level.values():
                candidates = find_candidates([each for _, each in alike])
                for (index, each), found in zip(alike, candidates, strict=True):
                    known_there = known[index] if known else ()
                    moves_of[index] = tuple(find_moves(each, settings, found, known_there))
    return moves_of


def too_few(values: NDArray[Any]) -> bool:
    """Return whether finite ``values`` (n,) are too few to be examined."""
    return len(values) < SHORTEST_SERIES or (
        len(values) < NOISY_SERIES and _too_short(prepare(values))
    )


def _too_short(prepared: Prepared) -> bool:
    return len(prepared.levels) < min(NOISY_SERIES, 2 * prepared.shortest)


def find_moves(
    prepared: Prepared,
    settings: TrendSettings,
    candidates: SplitCandidates,
    known: Sequence[int] = (),
) -> Iterator[Move]:
    """Yield the moves of a series in order, each significant and large enough."""
    segmented = segment(prepared, settings.alpha, candidates, known)
    splits = segmented.splits
    if not splits:
        return
    ramps = {stretch.first: stretch for stretch in segmented.ramps}
    smallest = math.log1p(settings.floor)
    index = previous_end = 0
    while index < len(splits):
        stretch = ramps.get(index)
        if stretch is None:
            split = splits[index]
            large = abs(split.test.difference) >= smallest
            if large and not _may_turn(prepared, split, settings.alpha, known):
                ends = split.place - 1, split.place
                within = place_interval(prepared, split)
                yield _sized(prepared, "step", split.begin, ends, within, split.test)
            previous_end = split.place
            index += 1
        else:
            ramp, next_index = stretch.ramp, stretch.last + 1
            if abs(ramp.difference) >= smallest:
                yield _ramp(prepared, splits[index:next_index], ramp, previous_end)
            previous_end = ramp.after
            index = next_index


def _may_turn(prepared: Prepared, split: Split, alpha: float, known: Sequence[int]) -> bool:
    """Return whether the newest change would lose its significance if the level went back.

    Such a change is held back, unless it was reported already. After n runs of the new level and
    ``TURNING`` more at the old level, t would be √(n / (n + TURNING)) times what it is now.
    """
    runs = len(prepared.cleaned) - split.place
    newest = split.end == len(prepared.cleaned) and runs <= FRESH
    if not newest or prepared.exact or _is_known(split.place, known):
        return False
    t = split.test.difference / split.test.error * math.sqrt(runs / (runs + TURNING))
    return place_p(prepared, t, split.test.df, searched=True) > alpha


def _ramp(prepared: Prepared, splits: Sequence[Split], ramp: Ramp, previous_end: int) -> Move:
    """Return ``splits`` as one ramp, with the smallest p among them.

    The ramp's old level begins where the previous move ended. If the previous move is a ramp that
    overlaps this one, the old level is the single point ``ramp.before``.
    """
    surest = min((split.test for split in splits), key=lambda test: test.p)
    test = LevelTest(ramp.difference, math.sqrt(ramp.variance), surest.df, surest.p)
    begin = min(max(splits[0].begin, previous_end), ramp.before)
    ends = ramp.before, ramp.after
    return _sized(prepared, "ramp", begin, ends, ends, test)


def _sized(
    prepared: Prepared,
    kind: ChangeKind,
    begin: int,
    ends: tuple[int, int],
    within: tuple[int, int],
    test: LevelTest,
) -> Move:
    """Return a move. Its old level reaches from ``begin`` to the first of ``ends``, inclusive."""
    import numpy as np
    from scipy import special

    before, change = float(np.median(prepared.levels[begin : ends[0] + 1])), test.difference
    if not prepared.logarithmic:
        levels = before * prepared.unit, (before + change) * prepared.unit
        return Move(kind, *ends, within, *levels, None, None, None, test.p)
    half = 0.0 if prepared.exact else float(special.stdtrit(test.df, 0.975)) * test.error
    levels = math.exp(before), math.exp(before + change)
    ratios = ratio_of(change), ratio_of(change - half), ratio_of(change + half)
    return Move(kind, *ends, within, *levels, *ratios, test.p)


@dataclass(frozen=True, slots=True)
class Segmentation:
    """The significant splits in order, and which of them are ramps."""

    splits: tuple[Split, ...] = ()
    ramps: tuple[RampSplits, ...] = ()


def segment(
    prepared: Prepared,
    alpha: float,
    candidates: SplitCandidates | None = None,
    known: Sequence[int] = (),
) -> Segmentation:
    """Return the splits that are significant at ``alpha``, and which of them are ramps.

    The wander is measured outside of the changes found so far. With this wander the changes are
    searched again, until no more are found. Otherwise many steps, or a ramp, would look like wander
    and hide in it. This search uses only the shortest blocks, because true steps move most of the
    long blocks.

    A ``known`` place is a candidate whatever its strength, and is tested without the adjustment for
    a search. So a reported change is withdrawn only where the evidence has turned.
    """
    if candidates is None:
        candidates = find_candidates([prepared])[0]
    if not len(candidates.places) and not known:
        return Segmentation()
    blocks = None if prepared.exact else measure_blocks(prepared)
    bounds = [0, *choose(candidates), len(prepared.cleaned)]
    for _ in range(min(2, len(bounds) - 2)):  # twice, as each place depends on its neighbours'
        for index in range(1, len(bounds) - 1):
            bounds[index] = _best_place(prepared, bounds[index - 1], bounds[index + 1])
    bounds = _with_known(bounds, known, prepared.shortest)
    wander = Wander()
    if blocks is not None:
        moving = _moving(prepared, blocks, bounds, min(LENIENT * alpha, 0.05), known)
        wander = wander_by_length(prepared, blocks, moving)
    splits = _without_weak(prepared, wander, bounds, alpha, known)
    return Segmentation(splits, find_ramps(prepared, splits))


def _with_known(bounds: Sequence[int], known: Sequence[int], shortest: int) -> list[int]:
    """Return ``bounds``, and each ``known`` place that is not near one of them, sorted."""
    every = list(bounds)
    for place in known:
        if min(abs(place - bound) for bound in every) > max(NEAR_KNOWN, shortest):
            every.append(place)
    return sorted(every)


def _is_known(place: int, known: Sequence[int]) -> bool:
    return any(abs(place - other) <= NEAR_KNOWN for other in known)


def _moving(
    prepared: Prepared,
    blocks: Blocks,
    bounds: Sequence[int],
    alpha: float,
    known: Sequence[int],
) -> list[tuple[int, int]]:
    """Return the first and last place of each move at a lenient ``alpha``.

    The wander isn't measured there. A ramp takes the whole stretch along its steps out of the
    wander. So ramps are searched only once no more steps are found.
    """

    splits: tuple[Split, ...] = ()
    ramps: tuple[RampSplits, ...] = ()
    for with_ramps in (False, True):
        ramps = find_ramps(prepared, splits) if with_ramps else ()
        while True:
            wander = blocks.wander(_places_of_moves(splits, ramps))
            more = _without_weak(prepared, wander, bounds, alpha, known)
            if len(more) <= len(splits):
                break
            splits = more
            ramps = find_ramps(prepared, splits) if with_ramps else ()
    return _places_of_moves(splits, ramps)


def _places_of_moves(splits: Sequence[Split], ramps: Sequence[RampSplits]) -> list[tuple[int, int]]:
    """Return the first and last place of each move."""
    in_ramps = {i for part in ramps for i in range(part.first, part.last + 1)}
    steps = [(s.place, s.place) for i, s in enumerate(splits) if i not in in_ramps]
    return steps + [(part.ramp.before, part.ramp.after) for part in ramps]


def choose(candidates: SplitCandidates) -> list[int]:
    """Return the places that a greedy choice takes, sorted.

    It takes the strongest candidate, drops all candidates whose interval contains its place, and
    goes on with the strongest that is left.
    """
    chosen: list[int] = []
    remaining = candidates.places >= 0
    while remaining.any():
        place = int(candidates.places[int(remaining.argmax())])
        chosen.append(place)
        remaining &= ~((candidates.begins < place) & (place < candidates.ends))
    return sorted(chosen)


def _without_weak(
    prepared: Prepared,
    wander: Wander,
    bounds: Sequence[int],
    alpha: float,
    known: Sequence[int],
) -> tuple[Split, ...]:
    """Remove splits until all are significant and none opens an excursion.

    The least significant split goes first. Its neighbours then move to their new best places and
    are tested again.
    """
    kept = list(bounds)

    def tested(index: int) -> LevelTest:
        begin, place, end = kept[index : index + 3]
        searched = not _is_known(place, known)
        return compare_levels(prepared, wander, (begin, place), (place, end), searched=searched)

    tests = [tested(index) for index in range(len(kept) - 2)]
    while tests:
        doomed = max(range(len(tests)), key=lambda i: (tests[i].p, -abs(tests[i].difference)))
        if tests[doomed].p <= alpha:
            # All are significant. Drop the split that opens an excursion: then the split that
            # closes it is no longer significant, and goes next.
            doomed = _excursion(kept, tests, known)
            if doomed < 0:
                break
        del kept[doomed + 1], tests[doomed]
        for index in (doomed - 1, doomed):
            if 0 <= index < len(tests):
                kept[index + 1] = _best_place(prepared, kept[index], kept[index + 2])
        for index in range(max(0, doomed - 2), min(len(tests), doomed + 2)):
            tests[index] = tested(index)
    return tuple(
        Split(begin, place, end, test)
        for begin, place, end, test in zip(kept, kept[1:], kept[2:], tests, strict=False)
    )


def _excursion(bounds: Sequence[int], tests: Sequence[LevelTest], known: Sequence[int]) -> int:
    """Return the index of a split that opens a short stay at another level, or -1.

    A split that was reported already is kept: its level came back, so the change is fixed.
    """
    for index in range(len(tests) - 1):
        out, back = tests[index].difference, tests[index + 1].difference
        short = bounds[index + 2] - bounds[index + 1] < EXCURSION
        if _is_known(bounds[index + 1], known):
            continue
        if short and out * back < 0 and abs(out + back) < min(abs(out), abs(back)) / 2:
            return index
    return -1


def _best_place(prepared: Prepared, begin: int, end: int) -> int:
    """Return the split of begin..end with the least squared error, or the middle if too short."""
    if end - begin < 2 * prepared.shortest:
        return (begin + end) // 2
    if (begin, end) not in prepared.places:
        first, last = begin + prepared.shortest, end - prepared.shortest
        gains = split_gains(prepared, begin, end)[first - begin - 1 : last - begin]
        prepared.places[begin, end] = first + int(gains.argmax())
    return prepared.places[begin, end]


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
    """Intervals of one length, and the lengths that the left side of a split may have."""

    length: int
    starts: NDArray[Any]
    left_lengths: NDArray[Any]


@lru_cache(maxsize=64)
def _layers(size: int, shortest: int) -> tuple[_Layer, ...]:
    """Return layers of growing intervals over ``size`` points. The last is the whole series."""
    import numpy as np

    made = []
    length = 2 * shortest
    while length < size:
        step = max(1, length // 3)
        starts = np.unique(np.append(np.arange(0, size - length, step), size - length))
        made.append(_Layer(length, starts, np.arange(shortest, length - shortest + 1)))
        length = max(length + 1, int(length * INTERVAL_GROWTH))
    made.append(_Layer(size, np.zeros(1, dtype=np.intp), np.arange(shortest, size - shortest + 1)))
    return tuple(made)


def find_candidates(many: Sequence[Prepared]) -> list[SplitCandidates]:
    """Return the best split of each interval, if strong enough, for each series of ``many``.

    All series have the same length and the same ``shortest`` level.

    Notes
    -----
    Seeded binary segmentation: intervals of geometrically growing length that overlap by two
    thirds, so that each step is alone in some interval (Kovács, Bühlmann, Li and Munk 2023,
    Biometrika 110:249-256). O(n log n).
    """
    import numpy as np

    cleaned = np.stack([prepared.cleaned for prepared in many])
    size = cleaned.shape[1]
    sums = np.zeros((len(many), size + 1))
    np.cumsum(cleaned - cleaned.mean(axis=1)[:, None], axis=1, out=sums[:, 1:])
    variance = _variance_of_means(many, size)
    layers = _layers(size, many[0].shortest)
    best = [_best_of_layer(sums, variance, layer) for layer in layers]
    places = np.concatenate([layer_places for layer_places, _ in best], axis=1)
    strengths = np.concatenate([layer_strengths for _, layer_strengths in best], axis=1)
    strengths /= np.array([[prepared.sigma] for prepared in many])
    begins = np.concatenate([layer.starts for layer in layers])
    ends = np.concatenate([layer.starts + layer.length for layer in layers])
    candidates = [SplitCandidates(begins[:0], begins[:0], begins[:0])] * len(many)
    for row in np.flatnonzero(strengths.max(axis=1) >= STRONGEST_CANDIDATE):
        strong = np.flatnonzero(strengths[row] >= WEAKEST_CANDIDATE)
        order = strong[np.argsort(-strengths[row, strong], kind="stable")]
        candidates[row] = SplitCandidates(places[row, order], begins[order], ends[order])
    return candidates


def _variance_of_means(many: Sequence[Prepared], size: int) -> NDArray[Any]:
    """Return the variance (series, size + 1) of the mean of k points at index k, for noise of 1."""
    import numpy as np

    lengths = np.arange(1.0, size + 1.0)
    variance = np.zeros((len(many), size + 1))
    for row, prepared in enumerate(many):
        variance[row, 1:] = inflation(lengths, prepared.rho) / lengths
    return variance


def _best_of_layer(
    sums: NDArray[Any], variance: NDArray[Any], layer: _Layer
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the place and the strength (series, intervals) of each interval's best split."""
    import numpy as np
    from numpy.lib.stride_tricks import sliding_window_view

    left, variance_by_length = layer.left_lengths, variance[:, layer.left_lengths]
    first = sums[:, layer.starts, None]
    middle = sliding_window_view(sums, len(left), axis=1)[:, layer.starts + left[0]]
    # The right sides' lengths are the left ones reversed. In place, for memory, each strength is
    # |middle/left - (total - middle)/right| / sqrt(variance of left + variance of right)
    # = |middle - total * left/length| * length / (left * right * sqrt(...)).
    middle -= first
    total = sums[:, layer.starts + layer.length, None] - first
    middle -= total * (left / layer.length)
    variances = variance_by_length + variance_by_length[:, ::-1]
    weights = layer.length / (left * left[::-1] * np.sqrt(variances))
    middle *= weights[:, None, :]
    strength = np.abs(middle, out=middle)
    best = strength.argmax(axis=2)
    strengths = np.take_along_axis(strength, best[:, :, None], axis=2)[:, :, 0]
    return layer.starts + left[best], strengths
