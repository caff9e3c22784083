"""The newest values of a few series, for the report of a pull request."""

from __future__ import annotations

from perfci.history.history import open_history
from perfci.model.run import Point, RecordedRun
from perfci.trend.series import SeriesKey
from tests.builders.recorded import HERE, THERE, recorded

KEY = SeriesKey(HERE.key, "case_0[n=1]", "latency_p50")


def test_the_newest_runs_of_the_branch_in_the_order_of_their_commits(place: str) -> None:
    nights = [recorded(number) for number in (5, 3, 4, 1)]
    elsewhere = recorded(6, branch="(none)"), recorded(7, environment=THERE)
    with open_history(place) as history:
        history.record([*nights, *elsewhere])
        found = history.newest({KEY: ()}, 3, "main")
    by_number = {run.position: run.points[0].value for run in nights}
    assert found == {KEY: (by_number[3], by_number[4], by_number[5])}


def test_a_series_that_was_never_recorded_has_no_past(place: str) -> None:
    with open_history(place) as history:
        history.record([recorded(1)])
        assert history.newest({KEY._replace(case="other"): ()}, 3, "main") == {}


def test_a_renamed_case_has_the_values_of_its_earlier_names_and_of_a_run_with_both_its_own(
    place: str,
) -> None:
    def named(number: int, *cases: str) -> RecordedRun:
        points = (Point(case, "latency_p50", "s", number + 0.1 * len(case)) for case in cases)
        return recorded(number, points=tuple(points))

    with open_history(place) as history:
        history.record([named(1, "older"), named(2, "older", "new"), named(3, "new", "older")])
        key = KEY._replace(case="new")
        assert history.newest({key: ("old", "older")}, 3, "main") == {key: (1.5, 2.3, 3.3)}
