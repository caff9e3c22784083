"""``calibrate --at-once``: the spread of sessions that run at once on this machine.

One session runs alone in the machine's first part, then one in each part at once, then one alone in
the last part. The machine's hours disturb both ways alike. Each is of a commit against itself.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.calibrate.promise import PROMISED_METRIC
from perfci.commands.compare import now
from perfci.commands.project import cache_folder, load_report
from perfci.commands.revisions import commit_pair
from perfci.engine.engines import LocalEngine
from perfci.engine.job import JobFolder, gather
from perfci.engine.plan import MachineSlot, Plan, mark_of, slots
from perfci.errors import MeasureError, UsageError
from perfci.files import read_regular, write_file
from perfci.measure.checkout.disk import take_if_free
from perfci.measure.machine.quiet import available_cores, physical_cores, plan_cores, visible_gpus
from perfci.model.codec import CodecError, decode, encode
from perfci.stats.spread import Spread, spread_ratio
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.commands.project import Project
    from perfci.model.report import Report

_SESSIONS = 3
"""Sessions one after the other, each with its share of the time."""
_ENDLESS = 10_000
"""Rounds. Each session uses all of its time, so that all run at once to the end."""
_LEAST_DF = 2
MOST_RATIO = 1.25
"""A spread that is this much larger asks for 56 % more rounds to see the same change."""
_PAUSE_S = 0.5


def calibrate_concurrent(
    project: Project, rev: str, count: int, options: Sequence[str], budget_s: float
) -> ConcurrentSpread:
    """Measure ``rev`` against itself in ``count`` parts of this machine, and keep the answer.

    ``options`` are those of each session's command.
    """
    sha, _ = commit_pair(project, rev, rev, same=True)
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

    def end_strays(self, parts: Sequence[MachineSlot]) -> None:
        """End the sessions of a calibration that was killed. They would disturb these."""
        LocalEngine(JobFolder(self._folder), parts).cancel(self._plan(len(parts)))

    def measured(self, what: str, parts: Sequence[MachineSlot]) -> list[Report]:
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
                f"{what} left no report: {lacking[0]}",
                "Try `perfci compare HEAD HEAD --same`, which says more.",
            )
        reports = [load_report(gathered.reports[number]) for number in plan.numbers]
        if failure := next((failure for report in reports for failure in report.failures), None):
            raise MeasureError(
                "case-failed",
                f"of {what}, {failure.case} failed: {failure.message}",
                "Mend it, or leave it out with -k. If it fails only in concurrent sessions, it may "
                "lack memory.",
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


@dataclass(frozen=True, slots=True)
class ConcurrentSpread:
    """The spread of pairs of ``count`` sessions at once, ``ratio`` times that of one alone.

    ``lo`` and ``hi`` are its 95 % interval. ``pairs`` of ``cases`` were measured at once.
    """

    count: int
    ratio: float
    lo: float
    hi: float
    pairs: int
    cases: int
    created_at: str

    @property
    def allowed(self) -> bool:
        """Return whether so many sessions may measure at once. An uncertain answer is no."""
        return self.hi <= MOST_RATIO

    def __str__(self) -> str:
        return (
            f"{self.count} sessions at once spread {self.ratio:.2f} times as much as one alone "
            f"({self.lo:.2f} to {self.hi:.2f}; of {counted(self.cases, 'case')}, "
            f"measured on {self.created_at[:10]})"
        )


@dataclass(frozen=True, slots=True)
class MachineParts:
    """Physical ``cores`` and GPUs to part. ``workers`` is a session's number of cores."""

    cores: tuple[tuple[int, ...], ...]
    devices: tuple[str, ...]
    workers: int

    def parts(self, at_once: int) -> tuple[MachineSlot, ...]:
        """Return ``at_once`` equal parts, or as many as have cores enough where that is 0."""
        return slots(self.cores, self.devices, workers=self.workers, concurrent=at_once)


def machine_of(project: Project) -> MachineParts:
    """Return this machine as the project's sessions use it."""
    settings, pin = project.config.settings, project.config.quiet.pin
    available = available_cores()
    cores = plan_cores(available, cores=settings.cores, threads=settings.threads, pin=pin)
    return MachineParts(
        physical_cores(available),
        visible_gpus(os.environ),
        len(cores.workers) or cores.threads,
    )


def keep_answer(root: Path, machine: MachineParts, answer: ConcurrentSpread) -> None:
    """Keep the calibration's answer for a number of parts of this machine and the project."""
    path = _answer_path(root, machine, answer.count)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, encode(answer))


def forget_answer(root: Path, machine: MachineParts, count: int) -> None:
    """Forget an earlier answer, so that a calibration that fails now allows nothing."""
    _answer_path(root, machine, count).unlink(missing_ok=True)


def kept_answer(root: Path, machine: MachineParts, count: int) -> ConcurrentSpread | None:
    """Return the calibration's answer for ``count`` parts, or None where it can't be read."""
    try:
        return decode(read_regular(_answer_path(root, machine, count)), ConcurrentSpread)
    except (FileNotFoundError, CodecError):
        return None


def _answer_path(root: Path, machine: MachineParts, count: int) -> Path:
    """Machines may share a cache folder, and disturb each other's parts in ways of their own."""
    parts = [(slot.cores, slot.device) for slot in machine.parts(count)]
    mark = mark_of(platform.node(), str(root), machine.workers, parts)
    return cache_folder() / "at-once" / f"{mark}.json"
