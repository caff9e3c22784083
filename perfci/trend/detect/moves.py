"""Splits as moves: steps, and where steps are one slow ramp, the ramp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfci.trend.change import ChangeKind
from perfci.trend.detect.noise import Prepared
from perfci.trend.detect.ramps import Stretch
from perfci.trend.detect.segmenting import segment
from perfci.trend.detect.significance import Split, cumulate, place_interval


@dataclass(frozen=True, slots=True)
class Move:
    """A step or a ramp. ``difference`` and ``error`` are in the units of ``Prepared.levels``.

    ``begin`` and ``end`` bound the levels on its two sides; ``before`` is the last point of the old
    level and ``after`` the first of the new one; ``within`` is the same pair with 95 %
    confidence. ``p`` is of this series alone.
    """

    kind: ChangeKind
    begin: int
    before: int
    after: int
    end: int
    within: tuple[int, int]
    difference: float
    error: float
    df: float
    p: float


def find_moves(prepared: Prepared, alpha: float) -> tuple[Move, ...]:
    """Return the moves of a series in order, each significant at ``alpha``."""
    segmented = segment(prepared, alpha)
    splits = segmented.splits
    if not splits:
        return ()
    sums = cumulate(prepared.cleaned)
    stretches = {stretch.first: stretch for stretch in segmented.ramps}
    moves: list[Move] = []
    index = 0
    while index < len(splits):
        stretch = stretches.get(index)
        if stretch is None:
            within = place_interval(prepared, sums, splits[index])
            moves.append(_step(splits[index], within))
            index += 1
        else:
            settled = moves[-1].after if moves else 0
            moves.append(_ramp(splits[index : stretch.last + 1], stretch, settled))
            index = stretch.last + 1
    return tuple(moves)


def _step(split: Split, within: tuple[int, int]) -> Move:
    return Move(
        kind="step",
        begin=split.begin,
        before=split.place - 1,
        after=split.place,
        end=split.end,
        within=within,
        difference=split.test.difference,
        error=split.test.error,
        df=split.test.df,
        p=split.test.p,
    )


def _ramp(splits: Sequence[Split], stretch: Stretch, settled: int) -> Move:
    """Make one move of steps: it is as sure as the surest of them.

    Its old level is from ``settled`` on, where the move before it has ended. Where that is a ramp
    that it overlaps, the level is the one point ``before``.
    """
    before = stretch.ramp.before
    surest = min((split.test for split in splits), key=lambda test: test.p)
    return Move(
        kind="ramp",
        begin=min(max(splits[0].begin, settled), before),
        before=before,
        after=stretch.ramp.after,
        end=splits[-1].end,
        within=(before, stretch.ramp.after),
        difference=stretch.ramp.difference,
        error=math.sqrt(stretch.ramp.variance),
        df=surest.df,
        p=surest.p,
    )
