"""``calibrate --at-once``: the spread of sessions that run at once on this machine.

One session runs alone in the machine's first part, then one in each part at once, then one alone in
the last part. The machine's hours disturb both ways alike. Each is of a commit against itself.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.calibrate.promise import PROMISED_METRIC
from perfci.commands.compare import now
from perfci.commands.project import cache_folder, load_report
from perfci.commands.shards import ConcurrentSpread, commits, forget_answer, keep_answer, machine_of
from perfci.engine.job import JobFolder, gather
from perfci.engine.local import LocalEngine
from perfci.engine.plan import Plan, Slot, mark_of
from perfci.errors import MeasureError, UsageError
from perfci.measure.checkout.disk import take_if_free
from perfci.stats.spread import Spread, spread_ratio

if TYPE_CHECKING:
    from perfci.commands.project import Project
    from perfci.model.report import Report

_SESSIONS = 3
"""One after the other, each with its share of the time."""
_ENDLESS = 10_000
"""Rounds: each session has all of its time, so that all are beside each other to the end."""
_LEAST_DF = 2
_PAUSE_S = 0.5


def calibrate_at_once(
    project: Project, rev: str, count: int, options: Sequence[str], budget_s: float
) -> ConcurrentSpread:
    """Measure ``rev`` against itself in ``count`` parts of this machine, and keep the answer.

    ``options`` are those of each session's command.
    """
    sha, _ = commits(project, rev, rev, same=True)
    machine = machine_of(project)
    parts = machine.parts(count)
    if len(parts) < count:
        raise UsageError(
            "too-many-parts",
            f"this machine has {len(parts)} physical cores for --at-once {count}",
            "Give as many sessions as there are cores at most.",
        )
    folder = cache_folder() / "jobs" / f"at-once-{mark_of(str(project.root), count)}"
    command = (
        *(sys.executable, "-P", "-m", "perfci", "compare", sha, sha, "--same", "--all"),
        *("--no-why", "--rounds", str(_ENDLESS), "--budget", f"{budget_s / _SESSIONS:.0f}s"),
        *options,
    )
    with ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_if_free(folder / "lock")
        if lock is None:
            raise UsageError(
                "at-once-taken",
                "another perfci measures the same on this machine",
                "Wait for that one, or end it.",
            )
        stack.enter_context(lock)
        stack.callback(shutil.rmtree, folder)
        sessions = _Sessions(project, folder, command)
        sessions.end_strays(parts)
        forget_answer(project.root, machine, count)
        first = sessions.measured("one session alone", parts[:1])
        beside = sessions.measured(f"{count} sessions at once", parts)
        last = sessions.measured("one session alone again", parts[-1:])
    answer = judged(count, alone=(*first, *last), beside=(beside[0], beside[-1]))
    keep_answer(project.root, machine, answer)
    return answer


class _Sessions:
    """Runs one command in several parts of the machine at once."""

    def __init__(self, project: Project, folder: Path, command: tuple[str, ...]) -> None:
        self._project = project
        self._folder = folder
        self._command = command

    def _plan(self, count: int) -> Plan:
        names = tuple(f"session-{number}.json" for number in range(1, count + 1))
        return Plan(
            folder=str(self._project.caller.folder),
            commands=tuple((*self._command, "--json", str(self._folder / name)) for name in names),
            reports=names,
            time_limit_s=0.0,
        )

    def end_strays(self, parts: Sequence[Slot]) -> None:
        """End the sessions of a calibration that was killed. They would disturb these."""
        LocalEngine(JobFolder(self._folder), parts).cancel(self._plan(len(parts)))

    def measured(self, what: str, parts: Sequence[Slot]) -> list[Report]:
        """Return the report of a session in each of ``parts``."""
        plan = self._plan(len(parts))
        job = JobFolder(self._folder)
        job.clear(plan)
        self._project.caller.step(f"measuring {what} …")
        gathered = gather(
            plan,
            LocalEngine(job, parts),
            job,
            finished=lambda _: False,
            shown=lambda _: None,
            pause_s=_PAUSE_S,
        )
        if gathered.cancelled:
            raise KeyboardInterrupt
        if lacking := [
            gathered.ends[number] for number in plan.numbers if number not in gathered.reports
        ]:
            raise MeasureError(
                "no-session-reported",
                f"of {what} there is no report: {lacking[0]}",
                "Try `perfci compare HEAD HEAD --same`, which says more.",
            )
        reports = [load_report(gathered.reports[number]) for number in plan.numbers]
        if failure := next((failure for report in reports for failure in report.failures), None):
            raise MeasureError(
                "case-failed",
                f"of {what}, {failure.case} failed: {failure.message}",
                "Mend it, or leave it out with -k; one that fails at once alone may lack memory.",
            )
        return reports


def judged(count: int, *, alone: Sequence[Report], beside: Sequence[Report]) -> ConcurrentSpread:
    """Return the ratio of the spread of each report of ``beside`` to the one of ``alone``.

    Both are of the same part of the machine. MeasureError where there are too few pairs.
    """
    pairs = [
        (case, spread, other[case])
        for report, reference in zip(beside, alone, strict=True)
        for other in (_spreads(reference),)
        for case, spread in _spreads(report).items()
        if case in other
    ]
    ratio = spread_ratio([(spread, other) for _, spread, other in pairs])
    if ratio is None:
        raise MeasureError(
            "too-few-pairs",
            "there are too few pairs to know a spread",
            "Raise --budget, or choose quick cases with -k.",
        )
    return ConcurrentSpread(
        count,
        ratio.ratio,
        ratio.lo,
        ratio.hi,
        pairs=sum(spread.df + 1 for _, spread, _ in pairs),
        cases=len({case for case, _, _ in pairs}),
        created_at=now(),
    )


def _spreads(report: Report) -> Mapping[str, Spread]:
    """Return the spread of the log ratio of each case's pairs, of the median latency."""
    return {
        row.case: Spread(row.se * sqrt(row.df + 1.0), int(row.df))
        for row in report.results
        if row.metric == PROMISED_METRIC
        and row.method == "paired_t"
        and row.se is not None
        and row.df is not None
        and row.df >= _LEAST_DF
    }
