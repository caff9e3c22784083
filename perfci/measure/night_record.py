"""What is recorded of one commit of a night: whole cases, and why the others have no points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfci.errors import PerfciError
from perfci.measure.discovering import CUT_SHORT
from perfci.measure.schedule import is_whole
from perfci.record.case import Case, Failure
from perfci.record.report import Report
from perfci.record.run import CaseRun, Run
from perfci.record.settings import MeasureSettings

UNOPENED = frozenset({"build-failed", "no-benchmark-imports"})
OF_THE_COMMIT = UNOPENED | {
    *("wrong-benchmark", "duplicate-id", "nothing-selected"),
    "installed-copy",  # its package lay elsewhere; of the newest commit it is the configuration's
}
"""Slugs of what the same commit would meet again tomorrow; a full disk is none of them."""

_LONGEST = 600


def whole(
    measured: Run,
    report: Report,
    wanted: Sequence[Case],
    settings: MeasureSettings,
) -> Run:
    """Return the run as it is recorded: without cases that were cut short, with all that failed.

    Each of ``wanted`` then has points or a failure, or is measured another time. A file that was
    given too little time to import says nothing of the commit.
    """
    tried = {one.case.id for one in measured.cases}
    return replace(
        measured,
        cases=tuple(
            _brief(one) for one in measured.cases if one.failures or is_whole(one, settings)
        ),
        failures=tuple(_untried([one for one in wanted if one.id not in tried], report)),
    )


def failed_run(template: Run, wanted: Sequence[Case], error: PerfciError) -> Run:
    """Return the run of a commit that ended with ``error`` before anything was measured."""
    return replace(
        template,
        cases=(),
        failures=tuple(
            Failure(case.id, "head", "checkout", error.slug, _shortened(error.message))
            for case in wanted
        ),
    )


def _untried(wanted: Sequence[Case], report: Report) -> Iterable[Failure]:
    broken = {failure.case: failure for failure in report.failures}
    for case in wanted:
        failure = broken.get(case.file)
        if case.id in report.skipped:
            yield Failure(case.id, "head", "discovery", "skipped", report.skipped[case.id])
        elif failure is None:
            message = "this commit has no such case"
            yield Failure(case.id, "head", "discovery", "absent", message)
        elif failure.kind != CUT_SHORT:
            yield replace(failure, case=case.id, message=_shortened(failure.message), log_tail="")


def _brief(one: CaseRun) -> CaseRun:
    failures = (replace(f, message=_shortened(f.message), log_tail="") for f in one.failures)
    return replace(one, failures=tuple(failures))


def _shortened(message: str) -> str:
    """Keep the beginning and the end: what was done, and the last that it said."""
    if len(message) <= _LONGEST:
        return message
    return f"{message[: _LONGEST // 3]} … {message[-2 * _LONGEST // 3 :]}"
