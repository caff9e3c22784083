"""One series' moves: splits as steps or slow ramps, and their sizes in the metric's unit.

What goes to another process and what comes back is small and can be pickled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.trend.change import ChangeKind, TrendSettings
from perfci.trend.noise import Prepared, Split, cumulate, place_interval, prepare, prepare_all
from perfci.trend.ramps import Stretch
from perfci.trend.segmenting import LEAST, Candidates, find_candidates, segment

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


def find_moves(prepared: Prepared, alpha: float, candidates: Candidates) -> tuple[Move, ...]:
    """Return the moves of a series in order, each significant at ``alpha``."""
    segmented = segment(prepared, alpha, candidates)
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


def ratio_of(difference: float) -> float:
    """Return ``exp(difference)``, never beyond what two values of a series can differ by.

    An interval can: that of a wild series may reach further than any float.
    """
    from perfci.stats.t_tests import LARGEST

    most = 2.0 * math.log(LARGEST)
    return math.exp(min(max(difference, -most), most))


SHORTEST_SERIES = 5
"""Points: a shorter series is not examined."""

NOISY_SERIES = 8
"""Points: a shorter series with noise is not examined."""


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


TOGETHER = 25_000
"""Points, of series of one length, that are searched at a time: few enough for a core's cache."""


def examine(values: NDArray[Any], settings: TrendSettings) -> tuple[SizedMove, ...]:
    """Return the moves of one series of finite ``values`` (n,), in order."""
    return examine_all([values], settings)[0]


def examine_all(
    many: Sequence[NDArray[Any]], settings: TrendSettings
) -> list[tuple[SizedMove, ...]]:
    """Examine each of many series: what one process does at a time.

    Those of one length are prepared and searched together, as numpy's calls cost more than so few
    points. What is found in one doesn't depend on the others.
    """
    import numpy as np

    found: list[tuple[SizedMove, ...]] = [()] * len(many)
    of_length: dict[int, list[int]] = {}
    for index, values in enumerate(many):
        if len(values) >= SHORTEST_SERIES and values.min() != values.max():
            of_length.setdefault(len(values), []).append(index)
    for length, indices in of_length.items():
        rows = max(1, TOGETHER // length)
        for some in (indices[at : at + rows] for at in range(0, len(indices), rows)):
            prepared = prepare_all(np.stack([many[index] for index in some]))
            for index, moves in zip(some, _examine_alike(prepared, settings), strict=True):
                found[index] = moves
    return found


def _examine_alike(
    many: Sequence[Prepared], settings: TrendSettings
) -> list[tuple[SizedMove, ...]]:
    """Return the moves of each of ``many`` series of one length."""
    found: list[tuple[SizedMove, ...]] = [()] * len(many)
    of_shortest: dict[int, list[int]] = {}
    for index, one in enumerate(many):
        if not _too_short(one):
            of_shortest.setdefault(one.shortest, []).append(index)
    for indices in of_shortest.values():
        candidates = find_candidates([many[index] for index in indices], least=LEAST)
        for index, its in zip(indices, candidates, strict=True):
            found[index] = tuple(
                _found(many[index], move)
                for move in find_moves(many[index], settings.alpha, its)
                if abs(move.difference) >= math.log1p(settings.floor)
            )
    return found


def too_few(values: NDArray[Any]) -> bool:
    """Return whether finite ``values`` (n,) are too few to be examined."""
    return len(values) < SHORTEST_SERIES or (
        len(values) < NOISY_SERIES and _too_short(prepare(values))
    )


def _too_short(prepared: Prepared) -> bool:
    return len(prepared.levels) < min(NOISY_SERIES, 2 * prepared.shortest)


def _found(prepared: Prepared, move: Move) -> SizedMove:
    import numpy as np
    from scipy import special

    half = 0.0 if prepared.exact else float(special.stdtrit(move.df, 0.975)) * move.error
    before = float(np.median(prepared.levels[move.begin : move.before + 1]))
    after = before + move.difference
    if not prepared.logarithmic:
        unit = prepared.unit
        return SizedMove(
            move.kind,
            move.before,
            move.after,
            move.within,
            before * unit,
            after * unit,
            None,
            None,
            None,
            move.p,
        )
    return SizedMove(
        kind=move.kind,
        before=move.before,
        after=move.after,
        within=move.within,
        level_before=math.exp(before),
        level_after=math.exp(after),
        ratio=ratio_of(move.difference),
        ratio_lo=ratio_of(move.difference - half),
        ratio_hi=ratio_of(move.difference + half),
        p=move.p,
    )
