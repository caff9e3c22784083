"""The loop: candidates in, the weakest out one by one, until every change left is significant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.trend.candidates import Candidates, find_candidates
from perfci.trend.noise import Prepared
from perfci.trend.ramps import Stretch, find_ramps
from perfci.trend.significance import LevelTest, Split, Sums, compare_levels, cumulate, split_gains
from perfci.trend.wander import Blocks, Wander, measure_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 3.3
"""Standard errors: weaker candidates are not worth a look."""

LENIENT = 10.0
"""Times alpha: what is as sure as this is kept out of the wander, though not named for it."""

EXCURSION = 7
"""Nights: a shorter stay at another level with a way back to the old one is no change for good."""


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


def segment(prepared: Prepared, alpha: float) -> Segmented:
    """Return what moved, significant at ``alpha``.

    The wander is measured again without the gaps over what was found, until no more is found:
    many steps, or a ramp, would else hide behind the wander that they look like.
    """
    candidates = find_candidates(prepared, least=LEAST)
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
        wander = blocks.wander(_moving(prepared, sums, blocks, start, min(LENIENT * alpha, 0.05)))
    splits = _without_weak(prepared, sums, wander, start, alpha)
    return Segmented(splits, find_ramps(prepared, splits))


def _moving(
    prepared: Prepared, sums: Sums, blocks: Blocks, start: Sequence[int], alpha: float
) -> list[tuple[int, int]]:
    """Return what moves, at a lenient ``alpha``: where the wander can't be told from."""
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
