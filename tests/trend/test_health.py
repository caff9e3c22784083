"""The gate's own health."""

from dataclasses import replace

import numpy as np
import pytest

from perfci.model.run import GateOutcome
from perfci.trend.health import health
from perfci.trend.series import Timeline
from perfci.units import date_of, day_of
from tests.trend.histories import ENVIRONMENT, date, run, series, timelines, wobbling

NOW = "2026-03-23T05:00:00Z"
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

    told = health(outcomes, {}, (), now=NOW)

    assert told.false_alarm_rate == pytest.approx(1 / 3)
    assert told.inconclusive_share == pytest.approx(6 / 40)
    assert (told.reports, told.same_reports) == (4, 3)


def test_without_reports_there_are_no_rates():
    told = health([], {}, (), now=NOW)

    assert told.false_alarm_rate is None
    assert told.inconclusive_share is None


def test_nights_without_a_run_are_named_by_date():
    days = ["2026-02-26", "2026-02-27", "2026-03-02", "2026-03-02"]
    nights = tuple(run(i, measured_at=f"{day}T02:00:00Z") for i, day in enumerate(days))

    told = health([], {ENVIRONMENT: Timeline(ENVIRONMENT, nights)}, (), now=NOW)

    assert told.missing_nights == {ENVIRONMENT: ("2026-02-28", "2026-03-01")}
    assert told.days_since_run == {ENVIRONMENT: 21}


def test_what_another_tool_measured_or_a_new_driver_replaced_lacks_no_nights():
    releases = (run(0, source="asv", runner="lab"), run(50, source="asv", runner="lab"))
    lines = {
        "asv": Timeline("asv", releases),
        "old": Timeline("old", tuple(run(day) for day in (0, 1, 3))),
        "new": Timeline("new", tuple(run(day) for day in (4, 5))),
    }

    told = health([], lines, (), replaced={"old"}, now=date(8))

    assert {key: len(dates) for key, dates in told.missing_nights.items()} == {"new": 0, "old": 1}
    assert told.days_since_run == {"new": 3}


def test_a_clock_that_is_behind_makes_no_run_older_than_today():
    (told,) = health([], timelines(9), (), now=date(2)).days_since_run.values()

    assert told == 0


def test_a_machine_that_was_slow_for_some_nights_shows_in_all_its_series():
    pace = np.ones(60)
    pace[30:35] = 1.2
    many = [series(wobbling(60, seed=i, level=10.0**i) * pace, str(i)) for i in range(8)]

    (drift,) = health([], timelines(60), many, now=NOW).runner_drift

    assert drift.runner == "runner-1"
    assert drift.ratios[30:35] == pytest.approx([1.2] * 5, rel=0.02)
    assert drift.ratios[10] == pytest.approx(1.0, rel=0.02)
    assert list(drift.dates) == sorted(drift.dates)


def test_a_benchmark_that_became_slower_is_no_machine_drift():
    many = [series(wobbling(60, seed=i), str(i)) for i in range(8)]
    many[0].values[30:] *= 2.0
    many[1].values[40] *= 2.0

    (drift,) = health([], timelines(60), many, now=NOW).runner_drift

    assert max(drift.ratios) < 1.02


def test_too_few_series_tell_nothing_of_a_machine():
    many = [series(wobbling(60, seed=i), str(i)) for i in range(4)]

    assert health([], timelines(60), many, now=NOW).runner_drift == ()


@pytest.mark.parametrize(
    ("date", "day"), [("1970-01-01", 0), ("2000-02-29", 11_016), ("2026-11-21", 20_778)]
)
def test_dates_are_days_since_1970(date, day):
    assert day_of(f"{date}T23:59:59Z") == day
    assert date_of(day) == date


def test_what_is_no_date_is_no_day():
    assert day_of("") is None
    assert day_of("yesterday") is None
