"""Processes of two speeds are compared within each; that more of them are slow isn't hidden."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from perfci.verdict.stopping import chance, wants_rounds
from tests.verdict.workers import case, side

POLICY = Policy()
NOISE = (0.001, -0.002, 0.002, 0.0015, -0.001, -0.0015, 0.0005, 0.0)
GAP = math.log(1.1)
BALANCED = (0, 1, 0, -1, 0, 1, 0, -1)


def compared(change: float, moves: Sequence[int], gap: float = GAP) -> Comparison:
    """Return the row of rounds in which head alone, base alone or neither was slow."""
    base = [math.exp(gap * (move < 0)) for move in moves]
    logs = [change + gap * (move > 0) for move in moves]
    head = [math.exp(log + noise) for log, noise in zip(logs, NOISE, strict=False)]
    rows = compare_case(
        case(), side("base", "latency_p50", base), side("head", "latency_p50", head), POLICY,
        paired=True,
    )  # fmt: skip
    (row,) = adjust(rows, POLICY)
    return row


def verdict(row: Comparison) -> str:
    return decide([row], (), POLICY).status


def test_identical_sides_are_unchanged_within_each_speed() -> None:
    row = compared(0.0, BALANCED)
    assert row.status == "unchanged"
    assert row.ratio == pytest.approx(1.0, abs=0.002)
    assert row.ratio_hi < 1.01
    assert not wants_rounds(row, POLICY, 80)
    assert "head alone was slow in 2, base alone in 2" in row.warnings[0]
    assert "two speeds, 9.86 % apart" in row.warnings[0]


def test_a_slow_down_of_both_speeds_is_found() -> None:
    row = compared(math.log(1.075), BALANCED)
    assert (row.status, verdict(row)) == ("regressed", "fail")
    assert row.ratio == pytest.approx(1.075, abs=0.003)


def test_more_slow_processes_are_not_called_unchanged() -> None:
    row = compared(0.0, (1, 1, 0, -1, 1, 0, 0, 1))
    assert row.ratio_hi < 1.05
    assert (row.status, verdict(row)) == ("inconclusive", "inconclusive")
    assert "more of head's processes may be slow" in row.warnings[-1]
    assert wants_rounds(row, POLICY, 80)
    assert chance(row, POLICY, 80, 12) < chance(compared(0.0, BALANCED), POLICY, 80, 12)


def test_a_state_that_base_does_not_have_is_no_second_speed() -> None:
    row = compared(0.0, (0, 1, 0, 0, 0, 1, 0, 0))
    assert (row.status, verdict(row)) == ("inconclusive", "inconclusive")
    assert not any("two speeds, " in warning for warning in row.warnings)
