"""What a report says of disturbed bursts: how many were left out, and where too many were."""

from __future__ import annotations

from perfci.app.worker_notes import excluded_notes
from perfci.model.worker import WorkerOutput


def output(**fields: object) -> WorkerOutput:
    return WorkerOutput(case="c", side="head", round=1, values={}, samples=1, **fields)


def test_undisturbed_bursts_are_not_spoken_of() -> None:
    assert excluded_notes([output(), output()]) == ()


def test_excluded_bursts_are_counted_with_the_commonest_reason() -> None:
    taken = output(bursts_set_aside=2, disturbance="core taken")
    capped = output(bursts_set_aside=3, disturbance="power cap")
    assert excluded_notes([output(), taken, capped]) == (
        "5 bursts were excluded, most often because of this: power cap.",
    )
    one = output(bursts_set_aside=1, disturbance="core taken")
    assert excluded_notes([one]) == (
        "1 burst was excluded, most often because of this: core taken.",
    )


def test_workers_with_too_many_disturbed_bursts_are_noted_separately() -> None:
    foreign = output(bursts_disturbed=7, disturbance="beside a foreign process (41)")
    taken = output(bursts_set_aside=2, disturbance="core taken")
    left_out, kept = excluded_notes([foreign, foreign, taken])
    assert left_out.startswith("2 bursts were excluded")
    assert kept.startswith("Most bursts of 2 workers were disturbed but kept")
    assert "beside a foreign process (41)" in kept
    assert "busy or throttled machine" in kept
