"""A run as the history records it: its points, its id, and what failed."""

from __future__ import annotations

import math
from dataclasses import replace

from perfci.history.runs import recorded_run
from perfci.model.case import Failure
from perfci.model.run import Run
from tests.baselines.runs import run, worker


def recorded(one: Run, runner: str = "lab", **said):
    return recorded_run(one, source="run", runner=runner, **said)


def test_the_same_run_has_the_same_id_whoever_records_it() -> None:
    one = recorded(run("a", "b"))
    again = recorded_run(run("a", "b"), source="nightly", runner="lab", subject="s", position=4)
    assert one.id == again.id


def test_another_measurement_has_another_id() -> None:
    runs = [
        run("a"),
        run("b"),
        run("a", "b"),
        run("a", sha="b" * 40),
        run("a", at="2026-03-04T05:06:08+00:00"),
        run("a", latency=1.3),
        replace(run("a"), failures=(Failure("x", "head", "import", "crash", "gone"),)),
    ]
    (measured,) = run("a").cases
    as_base = tuple(replace(one, side="base") for one in measured.workers)
    base = replace(run("a"), cases=(replace(measured, workers=as_base),))
    ids = {recorded(one).id for one in (*runs, base)} | {recorded(run("a"), runner="other").id}
    assert len(ids) == len(runs) + 2


def test_points_are_the_centres_over_workers() -> None:
    latencies = (1.0, 2.0, 4.0)
    case = replace(
        run("a").cases[0],
        workers=tuple(worker("a", number, value) for number, value in enumerate(latencies)),
    )
    made = recorded(replace(run("a"), cases=(case,)))
    points = {point.metric: point for point in made.points}
    assert math.isclose(points["latency_p50"].value, 2.0)  # the geometric mean, as reports have it
    assert points["graph_breaks"].value == 1.0
    assert (points["tokens"].unit, points["tokens"].direction) == ("tokens/s", "higher")
    assert made.source_hashes == {"a": "s1"}
    assert (made.measured_at, made.sha) == (run("a").created_at, "a" * 40)


def test_a_count_stays_the_whole_number_that_workers_gave() -> None:
    values = (12_345_677.0, 12_345_678.0, 12_345_678.0)
    case = replace(
        run("a").cases[0],
        workers=tuple(
            replace(worker("a", number), values={"peak_device_memory": value})
            for number, value in enumerate(values)
        ),
    )
    (point,) = recorded(replace(run("a"), cases=(case,))).points
    assert point.value == 12_345_678.0


def test_a_case_that_failed_has_a_reason_and_no_points() -> None:
    made = recorded(run("a", "b", failed=("b",)))
    assert {point.case for point in made.points} == {"a"}
    assert made.failed == {"b": "crash: gone"}
    assert "b" not in made.source_hashes
