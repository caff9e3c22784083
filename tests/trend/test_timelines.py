"""From a loaded history to timelines: order, branches, aliases, units, sources."""

import numpy as np
import pytest

from perfci.trend import LoadedHistory, LoadedRun, LoadedSeries, SeriesKey, Timeline
from perfci.trend.timelines import ArrangedHistory, arrange, current_name
from tests.trend.histories import ENVIRONMENT, date, run

KEY = SeriesKey(ENVIRONMENT, "encoder", "latency_p50")


def part(runs, values, *, case="encoder", unit="s") -> LoadedSeries:
    return LoadedSeries(
        KEY._replace(case=case), unit, "lower", np.array(runs), np.array(values, dtype=float)
    )


def history(nights, *parts, sources=None) -> LoadedHistory:
    runs = tuple(LoadedRun(ENVIRONMENT, one) for one in nights)
    maps = [
        {} if source is None else {"encoder": source} for source in sources or [None] * len(runs)
    ]
    return LoadedHistory({ENVIRONMENT: {"cpu": "x"}}, runs, parts, maps, np.arange(len(runs)))


def shas(arranged: ArrangedHistory) -> list[int]:
    return [int(one.sha, 16) if one.sha else -1 for one in arranged.timelines[ENVIRONMENT].runs]


def order(*numbers) -> list[str]:
    return [f"{number:040x}" for number in numbers]


def test_runs_stand_in_the_order_of_their_commits_whatever_the_clock_said():
    nights = [
        run(2, measured_at=date(1)),
        run(0, measured_at=date(300)),  # filled in late
        run(1, measured_at=date(0), committed_at=date(200)),
    ]
    loaded = history(nights, part([0, 1, 2], [3.0, 1.0, 2.0]))

    arranged = arrange(loaded, order=order(0, 1, 2))

    assert shas(arranged) == [0, 1, 2]
    assert arranged.series[0].values.tolist() == [1.0, 2.0, 3.0]
    assert arranged.timelines[ENVIRONMENT].facts == {"cpu": "x"}


def test_without_a_repository_the_recorded_positions_decide():
    nights = [run(5, position=2, committed_at=date(0)), run(6, position=1)]

    assert shas(arrange(history(nights))) == [6, 5]


def test_without_positions_the_commits_dates_decide():
    nights = [run(5, position=None), run(6), run(1, position=None)]

    assert shas(arrange(history(nights))) == [1, 5, 6]


def test_commits_that_a_force_push_removed_are_named_and_not_shown():
    nights = [run(0), run(1), run(2)]
    loaded = history(nights, part([0, 1, 2], [1.0, 2.0, 3.0]))

    arranged = arrange(loaded, order=order(0, 2))

    assert arranged.timelines[ENVIRONMENT].vanished == tuple(order(1))
    assert arranged.series[0].values.tolist() == [1.0, 3.0]
    assert arranged.series[0].rows.tolist() == [0, 1]
    assert "1 commit no longer on the branch" in arranged.notes[0]


def test_a_pull_requests_commits_have_not_vanished_from_the_branch():
    nights = [run(0), run(7, branch="feature")]

    arranged = arrange(history(nights), order=order(0), branch="main")

    assert shas(arranged) == [0]
    assert arranged.timelines[ENVIRONMENT].vanished == ()


def test_an_imported_run_without_a_commit_stands_where_its_date_says():
    nights = [run(0), run(10), run(5, sha="")]

    assert shas(arrange(history(nights), order=order(0, 10))) == [0, -1, 10]


def test_a_renamed_benchmark_goes_on_under_its_new_name():
    nights = [run(i) for i in range(4)]
    loaded = history(
        nights,
        part([0, 1, 2], [1.0, 2.0, 9.0], case="old[batch=1]"),
        part([2, 3], [3.0, 4.0], case="new[batch=1]"),
    )

    (series,) = arrange(loaded, aliases={"old": "new"}).series

    assert series.key.case == "new[batch=1]"
    assert series.values.tolist() == [1.0, 2.0, 3.0, 4.0]  # where both are there, the new one


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("a[x=1]", "c[x=1]"),
        ("b[x=2]", "c[x=2]"),
        ("a[x=3]", "special[y=3]"),
        ("ab[x=1]", "ab[x=1]"),
        ("circle", "circle"),
    ],
)
def test_aliases_name_cases_or_benchmarks_and_may_be_chained(case, name):
    aliases = {"a": "b", "b": "c", "a[x=3]": "special[y=3]", "circle": "circle"}

    assert current_name(case, aliases) == name


def test_values_in_an_older_unit_are_converted_and_named():
    nights = [run(0), run(1), run(2)]
    loaded = history(nights, part([0], [1500.0], unit="ms"), part([1, 2], [1.5, 1.6]))

    arranged = arrange(loaded, order=order(0, 1, 2))

    (series,) = arranged.series
    assert (series.unit, series.values.tolist()) == ("s", [1.5, 1.5, 1.6])
    assert arranged.notes == (
        f"{ENVIRONMENT}: encoder latency_p50: values in ms are converted; it is now in s.",
    )


def test_values_in_a_unit_that_cant_be_converted_are_left_out_and_named():
    nights = [run(i) for i in range(3)]
    loaded = history(nights, part([0], [1500.0], unit="laps"), part([1, 2], [1.5, 1.6]))

    arranged = arrange(loaded)

    assert arranged.series[0].unit == "s"
    assert arranged.series[0].values.tolist() == [1.5, 1.6]
    assert "values in laps are left out" in arranged.notes[0]


def test_a_change_of_the_benchmarks_own_source_is_marked_where_it_is():
    nights = [run(i) for i in range(6)]
    sources = ["d", "d", None, "d", "g", "g"]
    loaded = history(nights, part(range(6), np.ones(6)), sources=sources)

    assert arrange(loaded).series[0].source_changes == (4,)


def test_a_further_night_of_a_commit_stands_at_when_it_was_measured():
    nights = (
        run(0, measured_at=date(3)),
        run(0, measured_at=date(4)),
        run(1, measured_at=date(5)),
        run(2, sha="", committed_at="", measured_at=date(6)),
    )

    assert Timeline(ENVIRONMENT, nights).dates == (date(0), date(4), date(1), date(6))


@pytest.mark.parametrize("kept", [1, 0])
def test_runs_of_other_branches_are_counted(kept):
    nights = [run(1, branch="main")][:kept]
    nights += [run(7, branch="feature"), run(8, branch="fix"), run(9, branch="feature")]
    loaded = history(nights, part(range(len(nights)), [1.0] * len(nights)))

    arranged = arrange(loaded, order=order(0, 1), branch="main")

    assert len(shas(arranged)) == kept
    (note,) = arranged.notes
    assert "3 runs of other branches left out: feature (2), fix (1)" in note
    assert "--branch" in note
    assert "other branches" not in str(arrange(loaded, order=order(0, 1, 7, 8, 9)).notes)
