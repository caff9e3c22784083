"""Processor time of child processes: a side without any has zero of it, and it gates."""

from __future__ import annotations

import pytest

from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from perfci.verdict.stopping import undecided_metrics
from tests.verdict.workers import STEADY, case, worker

METRIC = "children_cpu_time"
POLICY = Policy()
Workers = tuple[object, ...]


def workers(side: str, seconds: float | None) -> Workers:
    """Return six workers of a side; ``None`` seconds: their calls use no other process."""
    return tuple(
        worker(side, number, {} if seconds is None else {METRIC: seconds * luck})
        for number, luck in enumerate(STEADY if side == "base" else STEADY[::-1], start=1)
    )


def compared(base: float | None, head: float | None) -> tuple:
    sides = workers("base", base), workers("head", head)
    return adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY)


@pytest.mark.parametrize(
    ("base", "head", "status", "verdict"),
    [
        (None, 5e-3, "regressed", "fail"),
        (5e-3, None, "improved", "pass"),
        (0.0, 5e-3, "regressed", "fail"),
        (5e-3, 6e-3, "regressed", "fail"),
        (5e-3, 5e-3, "unchanged", "pass"),
    ],
)
def test_work_that_appears_in_a_child_fails_the_gate(
    base: float | None, head: float | None, status: str, verdict: str
) -> None:
    (row,) = compared(base, head)
    assert (row.metric, row.status, row.gate) == (METRIC, status, "fail")
    assert decide([row], (), POLICY).status == verdict


def test_children_that_idle_are_no_work_and_ask_for_no_more_rounds() -> None:
    rows = compared(None, 2e-5)
    assert [row.status for row in rows] == ["unchanged"]
    assert undecided_metrics(rows, POLICY, 1) == ()


def test_cases_that_use_no_processes_have_no_row_of_their_time() -> None:
    assert compared(None, None) == ()


def test_a_side_whose_time_could_not_be_read_is_not_taken_for_one_without_any() -> None:
    base = tuple(worker("base", n, {}, missing={METRIC: "unknown"}) for n in range(1, 7))
    assert compare_case(case(), base, workers("head", 5e-3), POLICY, paired=True) == ()
