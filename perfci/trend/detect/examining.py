"""One series alone: its moves, before a report's other series and its past come into it.

What goes to another process and what comes back is small and can be pickled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.trend.change import ChangeKind
from perfci.trend.detect.moves import Move, find_moves
from perfci.trend.detect.noise import Prepared, prepare
from perfci.trend.settings import TrendSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Differences of logarithms as the ratios that they are.


def ratio_of(difference: float) -> float:
    """Return ``exp(difference)``, never beyond what two values of a series can differ by.

    An interval can: that of a wild series may reach further than any float.
    """
    from perfci.stats.student import LARGEST

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


def examine_all(
    many: Sequence[NDArray[Any]], settings: TrendSettings
) -> list[tuple[SizedMove, ...]]:
    """Examine each of many series: what one process does at a time."""
    return [examine(values, settings) for values in many]


def too_few(values: NDArray[Any]) -> bool:
    """Return whether finite ``values`` (n,) are too few to be examined."""
    if len(values) < SHORTEST_SERIES:
        return True
    return len(values) < NOISY_SERIES and len(values) < 2 * prepare(values).shortest


def examine(values: NDArray[Any], settings: TrendSettings) -> tuple[SizedMove, ...]:
    """Return the moves of one series of finite ``values`` (n,), in order."""
    if too_few(values) or values.min() == values.max():
        return ()
    prepared = prepare(values)
    return tuple(
        _found(prepared, move)
        for move in find_moves(prepared, settings.alpha)
        if abs(move.difference) >= math.log1p(settings.floor)
    )


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
