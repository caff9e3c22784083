"""The loop: candidates in, the weakest out one by one, until every change left is significant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

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
    split_gains,
    wander_by_length,
)
from perfci.trend.ramps import Stretch, find_ramps

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Where a series might have moved: the best split of each of many seeded intervals.

DECAY = 1.5


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best splits of intervals, the strongest first; each array is (k,).

    ``places`` are the first points of new levels, ``strengths`` are in standard errors,
    ``begins`` and ``ends`` bound the intervals.
    """

    places: NDArray[Any]
    strengths: NDArray[Any]
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


def find_candidates(many: Sequence[Prepared], *, least: float) -> list[Candidates]:
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

    cleaned = np.stack([one.cleaned for one in many])
    size = cleaned.shape[1]
    sums = np.zeros((len(many), size + 1))
    np.cumsum(cleaned - cleaned.mean(axis=1)[:, None], axis=1, out=sums[:, 1:])
    lengths = np.arange(1.0, size + 1.0)
    variance = np.zeros((len(many), size + 1))  # of a level's mean
    for row, one in enumerate(many):
        variance[row, 1:] = inflation(lengths, one.rho) / lengths
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
    strength = np.concatenate(strengths, axis=1) / np.array([[one.sigma] for one in many])
    found = []
    for row in range(len(many)):
        strong = np.flatnonzero(strength[row] >= least)
        order = strong[np.argsort(-strength[row, strong], kind="stable")]
        found.append(Candidates(place[row, order], strength[row, order], begin[order], end[order]))
    return found


LEAST = 3.3
"""Standard errors: weaker candidates are not worth a look."""

LENIENT = 10.0
"""Times alpha: what is as sure as this is kept out of the wander, though not named for it."""

EXCURSION = 7
"""Runs: a shorter stay at another level with a way back to the old one is no change for good."""


@dataclass(frozen=True, slots=True)
class Segmented:
    """The significant splits in order, and which stretches of them are ramps."""

    splits: tuple[Split, ...] = ()
    ramps: tuple[Stretch, ...] = ()

    def moving(self) -> list[tuple[int, int]]:
        """Return the first and last place of each move."""
        within = {i for one in self.ramps for i in range(one.first, one.last + 1)}
        steps = [(s.place, s.place) for i, s in enumerate(self.splits) if i not in within]
        return steps + [(one.ramp.before, one.ramp.after) for one in self.ramps]


def segment(prepared: Prepared, alpha: float, candidates: Candidates | None = None) -> Segmented:
    """Return what moved, significant at ``alpha``, given the ``candidates`` where they are known.

    The wander is measured again without the gaps over what was found, until no more is found:
    many steps, or a ramp, would else hide behind the wander that they look like. Up to there it is
    of the shortest blocks alone, as true steps move most of the long ones.
    """
    if candidates is None:
        candidates = find_candidates([prepared], least=LEAST)[0]
    if not len(candidates.places):
        return Segmented()
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
    return Segmented(splits, find_ramps(prepared, splits))


def _moving(
    prepared: Prepared, sums: Sums, blocks: Blocks, start: Sequence[int], alpha: float
) -> list[tuple[int, int]]:
    """Return what moves, at a lenient ``alpha``: the wander isn't measured there."""
    found = Segmented()
    while True:
        wander = blocks.wander(found.moving())
        splits = _without_weak(prepared, sums, wander, start, alpha)
        if len(splits) > len(found.splits):
            found = Segmented(splits, find_ramps(prepared, splits) if found.ramps else ())
        elif found.ramps or not found.splits:
            return found.moving()
        else:
            found = Segmented(found.splits, find_ramps(prepared, found.splits))
            if not found.ramps:
                return found.moving()


def choose(candidates: Candidates) -> list[int]:
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
