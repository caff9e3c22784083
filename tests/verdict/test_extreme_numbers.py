"""A benchmark's own metric can give any number: none costs more than its own row."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as any_of

from perfci.calibrate import SessionRounds, calibrate
from perfci.model.case import Kind, Metric
from perfci.model.codec import to_plain
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.units import format_value
from perfci.verdict.case_comparisons import compare_case, number_rows
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from tests.verdict.workers import case, worker

POLICY = Policy()
EXTREME = [sys.float_info.max, -sys.float_info.max, sys.float_info.min, 5e-324, 0.0, -0.0, 1.0]
numbers = any_of.sampled_from(EXTREME) | any_of.floats(allow_nan=False, allow_infinity=False)
sides = any_of.lists(any_of.tuples(numbers, numbers), min_size=1, max_size=9)


def outputs(side: str, kind: Kind, values: list[float]) -> tuple[WorkerOutput, ...]:
    extra = (Metric("hits", "count", kind, 0.1, "fail"),)
    return tuple(
        worker(side, number, {"hits": value, "memory_growth": value}, extra_metrics=extra)
        for number, value in enumerate(values, start=1)
    )


def judged(kind: Kind, pairs: list[tuple[float, float]], *, paired: bool) -> list[Comparison]:
    base, head = (outputs(side, kind, list(values)) for side, values in zip(
        ("base", "head"), zip(*pairs, strict=True), strict=True
    ))  # fmt: skip
    rows = compare_case(case(), base, head, POLICY, paired=paired)
    return [*adjust(rows, POLICY), *number_rows(case(), head, POLICY)]


@given(sides, any_of.sampled_from(["per_worker", "exact"]), any_of.booleans())
def test_any_numbers_make_rows_that_can_be_written(
    pairs: list[tuple[float, float]], kind: Kind, paired: bool
) -> None:
    for row in judged(kind, pairs, paired=paired):
        to_plain(row)  # refuses what isn't finite
        for one in (row.base, row.head):
            assert one is None or one.center is None or format_value(one.center, row.unit)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
@pytest.mark.parametrize("paired", [True, False])
def test_numbers_whose_fourth_power_is_none_cost_no_report(unit: float, *, paired: bool) -> None:
    pairs = [(0.0, 0.0), (unit, unit), (2 * unit, 3 * unit)]
    for row in judged("per_worker", pairs, paired=paired):
        to_plain(row)


@given(sides)
def test_their_spread_can_be_calibrated(pairs: list[tuple[float, float]]) -> None:
    base, head = ([pair[index] for pair in pairs] for index in (0, 1))
    measured = outputs("base", "per_worker", base), outputs("head", "per_worker", head)
    rows = compare_case(case(), *measured, POLICY, paired=True)
    for row in calibrate(rows, POLICY, SessionRounds(5, 20))[0]:
        to_plain(row)  # refuses what isn't finite


@pytest.mark.parametrize("kind", ["per_worker", "exact"])
def test_what_cannot_be_computed_with_is_told_and_decides_nothing(kind: Kind) -> None:
    pairs = [(sys.float_info.max, 1.0 + index) for index in range(6)]
    (row,) = [one for one in judged(kind, pairs, paired=True)[:2] if one.metric == "hits"]
    assert row.status == "inconclusive"
    assert any("no test is possible" in warning for warning in row.warnings)
