"""What has gone: removed benchmarks, and environments that others have replaced."""

import numpy as np

from perfci.trend.health import replaced_environments, series_gone
from perfci.trend.series import SeriesKey, Timeline
from tests.trend.histories import ENVIRONMENT, date, run, series, timelines


def line(name: str, days: range, **fields: object) -> Timeline:
    return Timeline(name, tuple(run(day, **fields) for day in days))


def replaced(*lines: Timeline) -> set[str]:
    return set(replaced_environments({one.environment: one for one in lines}))


def test_an_environment_that_began_later_on_the_same_runner_replaces_the_one_before():
    old, new = line("old", range(10)), line("new", range(10, 20))

    assert replaced(old, new) == {"old"}
    assert replaced(old, line("elsewhere", range(10, 20), runner="runner-2")) == set()


def test_environments_that_take_turns_on_a_runner_are_both_in_use():
    odd, even = line("odd", range(1, 20, 2)), line("even", range(0, 20, 2))

    assert replaced(odd, even) == set()


def test_an_environment_is_in_use_while_one_of_its_runners_has_it():
    first, second = line("both", range(10)), line("both", range(10), runner="runner-2")
    both = Timeline("both", (*first.runs, *second.runs))

    assert replaced(both, line("new", range(10, 20))) == set()


def test_other_tools_environments_replace_each_other_not():
    old = line("old", range(10), source="asv")

    assert replaced(old, line("new", range(10, 20), source="asv")) == set()


def test_a_benchmark_that_its_environments_last_two_weeks_lack_is_gone():
    def of(case: str, *rows: int):
        return series(np.ones(len(rows)), case, rows=np.array(rows, dtype=np.int32))

    many = [of("new", 59), of("rare", 0, 46), of("removed", 0, 1, 45)]

    gone = series_gone(timelines(60), many, ())
    assert {key.case for key in gone} == {"removed"}
    assert len(series_gone(timelines(60), many, {ENVIRONMENT})) == 3


def test_a_night_that_a_clock_put_far_ahead_makes_nothing_go():
    nights = (*timelines(20)[ENVIRONMENT].runs, run(20, measured_at=date(4000)))
    one = series(np.ones(20))

    assert one.key == SeriesKey(ENVIRONMENT, "encoder", "latency_p50")
    assert series_gone({ENVIRONMENT: Timeline(ENVIRONMENT, nights)}, [one], ()) == frozenset()
