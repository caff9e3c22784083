"""Notes on disturbed bursts: the share that was left out, and where too many were."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.commands.run_to_report import burst_findings, with_session
from perfci.measure.progress import SessionResult, case_states
from perfci.model.case import Case
from perfci.model.measuring import WorkerOutput
from perfci.model.words import widens, words
from perfci.model.worker import THROTTLED
from perfci.units import format_share
from tests.report.examples import rich_report


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
    assert "busy or throttled machine: end other programs" in kept


@pytest.mark.parametrize(
    ("reason", "advice"),
    [("core taken", "end other programs"), (THROTTLED, "raise the processor quota"),
     ("power cap", "end other programs")],
)  # fmt: skip
@pytest.mark.parametrize(("excluded", "first"), [(24, False), (25, True), (240, True)])
def test_many_excluded_bursts_are_the_first_note_with_what_to_do(
    reason: str, advice: str, excluded: int, first: bool
) -> None:
    taken = output(bursts_set_aside=excluded, disturbance=reason)
    state = case_states((Case("c", "c", {}, "b.py", 1, ""),), ["head"])[0]
    state.outputs["head"].append(taken)
    result = SessionResult((state,), 1.0, 1.0, rounds=1, ended="done", notes=("of the session",))
    notes = with_session(rich_report(notes=("earlier",)), (), result, ()).notes
    assert notes[0 if first else 2].startswith(f"{format_share(excluded / 500)} of bursts were")
    assert (advice in " ".join(notes)) == first


def test_bursts_that_are_disturbed_but_kept_are_the_first_note() -> None:
    assert widens(burst_findings([output(bursts_disturbed=300, disturbance="core taken")])[0])
    unknown = replace(output(bursts_set_aside=9, disturbance="core taken"), bursts_measured=0)
    assert not widens(burst_findings([unknown])[0])
