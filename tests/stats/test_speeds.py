"""Two speeds of processes, and the change within each."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfci.stats.speeds import two_speeds

MOVES = (0, 1, 0, -1, 0, 1, 0)
NOISE = (0.001, -0.002, 0.002, 0.0015, -0.001, -0.0015, 0.0005)
GAP = math.log(1.1)


def changes(change: float = 0.0, moves: tuple[int, ...] = MOVES) -> list[float]:
    return [change + GAP * move + noise for move, noise in zip(moves, NOISE, strict=True)]


@pytest.mark.parametrize("change", [0.0, 0.05, -0.075])
def test_each_pair_is_told_by_which_side_was_slow(change: float) -> None:
    speeds = two_speeds(changes(change))
    assert speeds.moves == MOVES
    assert (speeds.head_slow, speeds.base_slow) == (2, 1)
    assert speeds.gap == pytest.approx(GAP, abs=0.003)
    assert speeds.lo < change + GAP / 7 < speeds.hi


def test_swapping_the_sides_swaps_the_moves() -> None:
    there, back = two_speeds(changes(0.02)), two_speeds([-change for change in changes(0.02)])
    assert back.moves == tuple(-move for move in there.moves)
    assert (back.lo, back.hi) == (pytest.approx(-there.hi), pytest.approx(-there.lo))


def test_gap_and_standard_error_are_those_of_least_squares() -> None:
    values, speeds = changes(0.03), two_speeds(changes(0.03))
    design = np.column_stack([np.ones(7), MOVES])
    (change, gap), (squares,), *_ = np.linalg.lstsq(design, values, rcond=None)
    assert speeds.gap == pytest.approx(gap)
    se = math.sqrt(squares / 5 * np.linalg.inv(design.T @ design)[0, 0])
    apart = [value - gap * move for value, move in zip(values, MOVES, strict=True)]
    assert np.mean(apart) == pytest.approx(change)
    assert np.std(apart, ddof=1) / math.sqrt(7) * speeds.widening == pytest.approx(se)


@pytest.mark.parametrize(
    "values",
    [
        changes(moves=(0, 1, 0, 1, 0, 1, 0)),  # no base alone was slow: a change, or a speed?
        [0.0, 0.0, 0.1, -0.1, 0.0, 0.1, 0.0],  # a clock of steps
        [0.001, 0.012, -0.011, 0.0, 0.002, -0.001, 0.0],  # too close to matter
        list(NOISE),
        changes()[:4],
        [*NOISE, *NOISE, 0.58, 1.16],  # two disturbed rounds, one twice as far out
        [*changes()[:6], math.inf],
    ],
)
def test_other_values_have_no_two_speeds(values: list[float]) -> None:
    assert two_speeds(values) is None
