"""Notes of a check that measured its suspects again name their measurement."""

from __future__ import annotations

from perfci.commands.check import findings_of_both, notes_of_both
from perfci.commands.run_to_report import burst_findings, worker_notes
from perfci.model.case import Case
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Report, Timing
from perfci.model.run import CaseRun, Environment, Run, Side
from perfci.verdict.decision import UNDECIDED

CREATED = "2026-03-01T00:00:00+00:00"
SIDE, MACHINE = Side("HEAD", "a" * 40, "python"), Environment("linux-1", {})


def run(excluded: int, side: str = "head") -> Run:
    worker = WorkerOutput(
        case="a", side=side, round=1, values={}, samples=1, bursts_set_aside=excluded,
        disturbance="core taken", bursts_measured=100,
    )  # fmt: skip
    return Run(SIDE, MACHINE, CREATED, (CaseRun(Case("a", "a", {}, "a.py", 1, ""), (worker,)),))


def measured(notes: tuple[str, ...], *runs: Run) -> Report:
    workers = [worker for run in runs for case in run.cases for worker in case.workers]
    return Report(
        "1", CREATED, "check", None, SIDE, MACHINE, UNDECIDED, Timing(1.0, 1.0, 1), (), (),
        notes=(*notes, *worker_notes(workers)), findings=burst_findings(workers),
    )  # fmt: skip


def test_bursts_are_counted_over_both_measurements_and_a_note_of_both_is_made_once() -> None:
    alone = run(3)
    own = measured(("Another session is measuring.",), alone)
    again = [run(5, "base"), run(2)]
    said = ("Another session is measuring.", "The budget was short.")
    both = ((again[0], again[1]), measured(said, *again))
    notes, of_again = notes_of_both(alone, own, [both, both])
    assert notes == (
        "Another session is measuring.",
        "3.4 % of bursts were excluded (17 of 500), most often because of this: core taken.",
    )
    assert of_again == ("measured again: The budget was short.",)
    (found,) = findings_of_both(alone, [both, both])
    assert found.arguments == {"excluded": 17, "bursts": 500, "reason": "core taken"}
