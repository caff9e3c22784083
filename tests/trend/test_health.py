"""The gate's own health."""

from dataclasses import replace

import pytest

from perfci.model.run import GateOutcome
from perfci.trend import Timeline
from perfci.trend.timelines import health
from tests.trend.histories import ENVIRONMENT, run

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

    told = health(outcomes, {})

    assert told.false_alarm_rate == pytest.approx(1 / 3)
    assert told.inconclusive_share == pytest.approx(6 / 40)
    assert (told.reports, told.same_reports) == (4, 3)


def test_without_reports_there_are_no_rates():
    told = health([], {})

    assert told.false_alarm_rate is None
    assert told.inconclusive_share is None


def test_nights_without_a_run_are_named_by_date():
    days = ["2026-02-26", "2026-02-27", "2026-03-02", "2026-03-02"]
    nights = tuple(run(i, measured_at=f"{day}T02:00:00Z") for i, day in enumerate(days))

    told = health([], {ENVIRONMENT: Timeline(ENVIRONMENT, nights)})

    assert told.missing_nights == {ENVIRONMENT: ("2026-02-28", "2026-03-01")}


def test_what_another_tool_measured_lacks_no_nights():
    releases = (run(0, source="asv", runner="lab"), run(50, source="asv", runner="lab"))
    lines = {
        "asv": Timeline("asv", releases),
        "own": Timeline("own", tuple(run(day) for day in (0, 1, 3))),
    }

    told = health([], lines)

    assert {key: len(dates) for key, dates in told.missing_nights.items()} == {"own": 1}
