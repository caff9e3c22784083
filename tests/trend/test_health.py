"""The gate's own health."""

from dataclasses import replace

import numpy as np
import pytest

from perfci.model.run import GateOutcome
from perfci.trend import Timeline
from perfci.trend.health import health, replaced_environments, series_gone
from tests.trend.histories import ENVIRONMENT, date, run, series, timelines

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

    told = health(outcomes, {}, now=NOW)

    assert told.false_alarm_rate == pytest.approx(1 / 3)
    assert told.inconclusive_share == pytest.approx(6 / 40)
    assert (told.reports, told.same_reports) == (4, 3)


def test_without_reports_there_are_no_rates():
    told = health([], {}, now=NOW)

    assert told.false_alarm_rate is None
    assert told.inconclusive_share is None


def test_nights_without_a_run_are_named_by_date():
    days = ["2026-02-26", "2026-02-27", "2026-03-02", "2026-03-02"]
    nights = tuple(run(i, measured_at=f"{day}T02:00:00Z") for i, day in enumerate(days))

    told = health([], {ENVIRONMENT: Timeline(ENVIRONMENT, nights)}, now=NOW)

    assert told.missing_nights == {ENVIRONMENT: ("2026-02-28", "2026-03-01")}
    assert told.days_since_run == {ENVIRONMENT: 21}


def test_what_another_tool_measured_or_a_new_driver_replaced_lacks_no_nights():
    releases = (run(0, source="asv", runner="lab"), run(50, source="asv", runner="lab"))
    lines = {
        "asv": Timeline("asv", releases),
        "old": Timeline("old", tuple(run(day) for day in (0, 1, 3))),
        "new": Timeline("new", tuple(run(day) for day in (4, 5))),
    }

    told = health([], lines, replaced={"old"}, now=date(8))

    assert {key: len(dates) for key, dates in told.missing_nights.items()} == {"new": 0, "old": 1}
    assert told.days_since_run == {"new": 3}


def line(name: str, days: range, **fields: object) -> Timeline:
    return Timeline(name, tuple(run(day, **fields) for day in days))


def replaced(*lines: Timeline) -> set[str]:
    return set(replaced_environments({one.environment: one for one in lines}))


def test_an_environment_that_began_later_on_the_same_runner_replaces_the_one_before():
    old, new = line("old", range(10)), line("new", range(10, 20))

    assert replaced(old, new) == {"old"}
    assert replaced(old, line("elsewhere", range(10, 20), runner="runner-2")) == set()


def test_an_environment_is_in_use_while_one_of_its_runners_has_it():
    first, second = line("both", range(10)), line("both", range(10), runner="runner-2")
    both = Timeline("both", (*first.runs, *second.runs))

    assert replaced(both, line("new", range(10, 20))) == set()


def test_a_benchmark_that_its_environments_last_two_weeks_lack_is_gone():
    def of(case: str, *rows: int):
        return series(np.ones(len(rows)), case, rows=np.array(rows, dtype=np.int32))

    many = [of("new", 59), of("rare", 0, 46), of("removed", 0, 1, 45)]

    gone = series_gone(timelines(60), many, ())
    assert {key.case for key in gone} == {"removed"}
    assert len(series_gone(timelines(60), many, {ENVIRONMENT})) == 3
