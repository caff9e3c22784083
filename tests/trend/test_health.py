"""The gate's own health."""

from dataclasses import replace

import pytest

from perfci.model.run import GateOutcome
from perfci.trend.timelines import health
from tests.trend.histories import ENVIRONMENT

OUTCOME = GateOutcome(
    id="1",
    command="compare",
    created_at="2026-01-01T00:00:00Z",
    environment=ENVIRONMENT,
    runner="runner-1",
    base_sha="a",
    head_sha="a",
    same=True,
    verdict="pass",
    comparisons=10,
    regressed=0,
    inconclusive=2,
)


def test_only_a_failed_comparison_of_a_commit_with_itself_is_a_false_alarm():
    outcomes = [
        OUTCOME,
        replace(OUTCOME, verdict="fail"),
        replace(OUTCOME, same=False, verdict="fail", inconclusive=0),
        replace(OUTCOME, verdict="inconclusive"),
    ]

    told = health(outcomes)

    assert told.false_alarm_rate == pytest.approx(1 / 3)
    assert told.inconclusive_share == pytest.approx(6 / 40)
    assert (told.reports, told.same_reports) == (4, 3)


def test_without_reports_there_are_no_rates():
    told = health([])

    assert told.false_alarm_rate is None
    assert told.inconclusive_share is None
