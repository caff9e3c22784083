"""Changes of one place are one event, of the code, of the environment, or an excursion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from perfci.trend import KnownChange, Series, SeriesKey, Timeline, TrendEvent
from perfci.trend.changes import analyse
from perfci.trend.events import group_events
from tests.trend.histories import run, wobbling

SIZE = 120
NOW = "2026-01-01T00:00:00Z"


def of(environment: str, number: int, *steps: tuple[int, float], size: int = SIZE) -> Series:
    """The series of case ``number`` with steps: (night, ratio)."""
    values = wobbling(size, rho=0.0, seed=number + 100 * len(environment))
    for at, ratio in steps:
        values[at:] *= ratio
    key = SeriesKey(environment, f"work[n={number}]", "latency_p50")
    return Series(key, "s", "lower", np.arange(size, dtype=np.int32), values)


def lines(*environments: str, **facts: Mapping[str, str]) -> dict[str, Timeline]:
    runs = tuple(run(number, runner="runner-1") for number in range(SIZE))
    return {one: Timeline(one, runs, facts.get(one, {})) for one in environments}


def events(series: list[Series], timelines: dict[str, Timeline]) -> tuple[TrendEvent, ...]:
    return group_events(analyse(series, timelines, now=NOW).changes, series, timelines)


def test_changes_between_the_same_commits_are_one_event_and_others_are_their_own():
    here = [of("one", number, (70, 1.1)) for number in range(6)]
    there = [of("one", number, (40, 0.9)) for number in range(6, 9)]
    quiet = [of("one", number) for number in range(9, 20)]

    newer, older = events([*here, *there, *quiet], lines("one"))

    assert (newer.kind, newer.series, newer.rows, newer.worse) == ("code", 6, (69, 70), True)
    assert (older.kind, older.series, older.rows, older.worse) == ("code", 3, (39, 40), False)
    assert newer.costs == pytest.approx([1.1] * 6, rel=0.01)
    assert older.largest_cost == pytest.approx(0.9, rel=0.01)
    assert newer.measured == 20
    assert newer.benchmarks == ("work",)


def test_what_moves_most_series_on_one_machine_and_none_on_its_like_is_the_environments():
    here = [of("one", number, (70, 1.1)) for number in range(8)]
    like = [of("other", number) for number in range(8)]

    (event,) = events([*here, *like], lines("one", "other"))

    assert (event.kind, event.evidence) == ("environment", ("unmoved_elsewhere",))


def test_what_moves_on_both_machines_is_the_codes():
    here = [of(one, number, (70, 1.1)) for one in ("one", "other") for number in range(8)]

    assert [event.kind for event in events(here, lines("one", "other"))] == ["code", "code"]


def test_another_kind_of_device_is_no_witness():
    facts = {"one": {"device_name": "NVIDIA H200"}, "other": {"device_name": "cpu"}}
    here = [of("one", number, (70, 1.1)) for number in range(8)]
    there = [of("other", number) for number in range(8)]

    (event,) = events([*here, *there], lines("one", "other", **facts))

    assert event.kind == "code"


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [({"sha": f"{69:040x}"}, "same_commit"), ({"runner": "runner-2"}, "runner")],
)
def test_most_series_that_moved_without_a_commit_or_on_another_runner_are_the_environments(
    fields, evidence
):
    runs = list(lines("one")["one"].runs)
    runs[69] = replace(runs[69], sha=f"{69:040x}")
    runs[70:] = [replace(one, **fields) for one in runs[70:]]
    timelines = {"one": Timeline("one", tuple(runs))}

    (event,) = events([of("one", number, (70, 1.1)) for number in range(8)], timelines)

    assert (event.kind, event.evidence) == ("environment", (evidence,))


def test_what_came_back_within_a_month_is_one_excursion():
    gone = [of("one", number, (60, 1.1), (75, 1 / 1.1)) for number in range(4)]

    (event,) = events([*gone, of("one", 5)], lines("one"))

    assert (event.kind, event.status, len(event.back)) == ("excursion", "fixed", 4)
    assert event.rows == (59, 60)
    assert event.at < event.ended_at


def test_what_came_back_after_months_is_a_regression_and_its_end():
    gone = [of("one", number, (30, 1.1), (90, 1 / 1.1)) for number in range(4)]

    end, begin = events([*gone, of("one", 5)], lines("one"))

    assert (begin.kind, begin.status, end.kind, end.worse) == ("code", "fixed", "code", False)


def test_an_event_keeps_its_id_though_its_worst_change_is_another():
    first = [of("one", number, (70, 1.1)) for number in range(3)]
    (before,) = events(first, lines("one"))
    known = [
        KnownChange(one.id, one.series, *one.names, one.worse, NOW, event=before.id)
        for one in before.changes
    ]
    later = [*first, of("one", 9, (70, 1.3))]
    changes = analyse(later, lines("one"), known=known, now=NOW).changes

    (after,) = group_events(changes, later, lines("one"), known)
    (without,) = group_events(changes, later, lines("one"))

    assert after.id == before.id != without.id


def test_one_new_change_does_not_make_a_known_event_new():
    series = [of("one", number, (70, 1.1)) for number in range(5)]
    (event,) = events(series, lines("one"))
    first, *others = event.changes
    grown = replace(event, changes=(first, *(replace(one, status="known") for one in others)))

    assert (event.status, grown.status, grown.news) == ("new", "known", False)
    assert replace(event, changes=(replace(first, status="fixed"), *others)).outstanding == (
        *others,
    )
