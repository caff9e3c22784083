"""Notes on disturbed bursts: the share that was left out, and where too many were."""

from __future__ import annotations

from perfci.commands.run_to_report import burst_findings
from perfci.model.measuring import WorkerOutput
from perfci.model.words import words


def output(**fields: object) -> WorkerOutput:
    return WorkerOutput(
        case="c", side="head", round=1, values={}, samples=1, bursts_measured=500, **fields
    )


def said(*outputs: WorkerOutput) -> list[str]:
    return [words(one) for one in burst_findings(outputs)]


def test_undisturbed_bursts_are_not_spoken_of() -> None:
    assert said(output(), output()) == []


def test_excluded_bursts_are_a_share_of_all_with_the_commonest_reason() -> None:
    taken = output(bursts_set_aside=2, disturbance="core taken")
    capped = output(bursts_set_aside=3, disturbance="power cap")
    assert said(output(), taken, capped) == [
        "0.333 % of bursts were excluded (5 of 1,500), most often because of this: power cap"
    ]
    (finding,) = burst_findings([taken])
    assert finding.arguments == {"excluded": 2, "bursts": 500, "reason": "core taken"}


def test_workers_with_too_many_disturbed_bursts_are_noted_separately() -> None:
    foreign = output(bursts_disturbed=7, disturbance="beside a foreign process (41)")
    taken = output(bursts_set_aside=2, disturbance="core taken")
    left_out, kept = said(foreign, foreign, taken)
    assert left_out.startswith("0.133 % of bursts were excluded")
    assert kept.startswith("Most bursts of 2 workers were disturbed but kept")
    assert "beside a foreign process (41)" in kept
    assert kept.endswith("busy or throttled machine")
