"""``calibrate``: a commit measured against itself, and what that shows of this machine.

The first part of the time goes to identical sides. Then the quiet settings are switched off, one
after the other. A second block of identical sides follows, so that the machine's disturbances over
the hours fall on both parts alike. The rest of the time tests the promise with a slow-down in head.

``--parallel`` measures the spread of sessions that run at once on this machine. One session runs
alone in the machine's first part, then one in each part at once, then one alone in the last part.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.calibrate import Calibration, DefaultSession, TimeSpent
from perfci.calibrate.promise import PROMISED_METRIC, suggest
from perfci.commands.calibrate_parts import SAME_END, CalibrationParts, in_workplace
from perfci.commands.compare import MeasureOptions, now, selected_cases, within
from perfci.commands.project import cache_folder, load_report
from perfci.commands.revisions import commit_pair
from perfci.config.loading import OWN_FILE, PROJECT_FILE, Config
from perfci.engine.engines import LocalEngine
from perfci.engine.job import JobFolder, MachineSlot, Plan, gather, mark_of
from perfci.errors import MeasureError, UsageError
from perfci.files import read_regular, write_file
from perfci.measure.checkout.disk import take_if_free
from perfci.measure.machine.cores import (
    available_cores,
    cores_near,
    physical_cores,
    plan_cores,
    slots,
    visible_gpus,
)
from perfci.measure.workplace import open_workplace
from perfci.model.case import Case, Failure
from perfci.model.codec import CodecError, decode, encode
from perfci.model.run import Environment, Side
from perfci.stats.spread import Spread, spread_ratio
from perfci.units import counted, format_duration, format_share
from perfci.verdict.shards import whole_by_part
from perfci.version import VERSION

if TYPE_CHECKING:
    from perfci.commands.project import Project
    from perfci.model.report import Report

_SESSIONS = 3
"""The steps of ``--parallel``, each with a third of the time: one alone, all at once, one alone."""
_ENDLESS_ROUNDS = 10_000
"""More rounds than fit the time: each session uses all of its time, and all end together."""
_LEAST_DF = 2
"""Least degrees of freedom of a case's spread. A spread of fewer pairs says next to nothing."""
MOST_RATIO = 1.25
"""Highest allowed spread of sessions at once, relative to one alone.

At 1.25, a session needs 56 % more rounds (1.25²).
"""
_PAUSE_S = 0.5
"""Time between two looks at the running sessions, in s."""


@dataclass(frozen=True, slots=True)
class CalibrationFacts:
    """Facts of a calibration besides its numbers. Times in s."""

    created_at: str
    side: Side
    environment: Environment
    wall_s: float
    budget_s: float
    configuration: str = ""
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()


def calibrate(
    project: Project,
    rev: str,
    options: MeasureOptions,
    budget_s: float,
    config_path: Path | None = None,
) -> Calibration:
    """Measure ``rev`` against itself for ``budget_s`` and return what this machine sees.

    ``config_path`` is the configuration's file where it is not one of the project's own. Promises
    are made for a session with the configuration's own budget and rounds.
    """
    project.check_outputs(options.outputs)
    # lexists: an entry that is no file is reported when it is read
    existing = (name for name in (OWN_FILE, PROJECT_FILE) if os.path.lexists(project.root / name))
    name = config_path.name if config_path else next(existing, OWN_FILE)
    head = project.side("head", rev, options.python)
    context = project.session_context()
    sides = (replace(head, name="base"), head)
    with open_workplace(within(context, budget_s), sides, options.log_folder) as workplace:
        cases = selected_cases(workplace, options)
        parts = CalibrationParts(
            measure=in_workplace(workplace, workplace.budget_end),
            config=context.config,
            cores=workplace.plan.cores,
            clock=context.executor.now,
            end=workplace.budget_end,
            scale=whole_by_part(workplace.cases(""), cases),  # the gate measures all cases
        )
        known = {case.id for case in workplace.discoveries["base"].discovery.cases}
        parts.run([case for case in cases if not case.skip and case.id in known])
        facts = CalibrationFacts(
            created_at=now(),
            side=next(side.side for side in workplace.plan.sides if side.name == "head"),
            environment=workplace.environments["head"],
            wall_s=workplace.elapsed_s(),
            budget_s=budget_s,
            configuration=name,
            failures=workplace.failures(cases),
            notes=workplace.notes,
        )
        return concluded(parts, cases, facts)


def concluded(
    results: CalibrationParts, cases: Sequence[Case], facts: CalibrationFacts
) -> Calibration:
    """Return the calibration: what was found, what to change, and what can't be relied on."""
    config, seen = results.config, results.calibrated.seen
    session = DefaultSession(
        rounds=config.settings.rounds,
        max_rounds=config.settings.max_rounds,
        budget_s=config.settings.budget,
        alpha=config.policy.alpha,
        comparisons=results.calibrated.comparisons,
    )
    own = {(case.benchmark, metric) for case in cases for metric in case.thresholds}
    untrusted = tuple(_untrusted_reasons(results))
    return Calibration(
        perfci_version=VERSION,
        created_at=facts.created_at,
        side=facts.side,
        environment=facts.environment,
        session=session,
        spent=TimeSpent(
            wall_s=facts.wall_s,
            budget_s=facts.budget_s,
            same_s=results.part_s.get("same", 0.0),
            settings_s=results.part_s.get("settings", 0.0),
            promise_s=results.part_s.get("promise", 0.0),
            rounds=results.rounds,
        ),
        seen=seen,
        false_alarms=results.calibrated.false_alarms,
        settings=results.settings,
        promise=results.promise,
        suggestions=()
        if untrusted
        else suggest(seen, session, config.policy, results.sweep_s, own=frozenset(own)),
        configuration=facts.configuration,
        failures=(*facts.failures, *results.failures),
        notes=(*facts.notes, *results.notes, *_cut(results, cases, config)),
        untrusted=untrusted,
    )


def _cut(results: CalibrationParts, cases: Sequence[Case], config: Config) -> list[str]:
    """Return notes on what the calibration did not look at, and why."""
    notes = []
    if results.session.most < config.settings.max_rounds:
        budget, most = format_duration(config.settings.budget), results.session.most
        notes.append(f"The budget of {budget} allows {most} rounds a case, not `max_rounds`.")
    if any(row.metric == PROMISED_METRIC and row.modes for row in results.calibrated.seen):
        notes.append("No promise is tested, and no threshold suggested, where there are two modes.")
    latency = [row for row in results.calibrated.seen if row.metric == PROMISED_METRIC]
    known = {row.case for row in latency if row.spread is not None}
    known |= {failure.case for failure in results.failures}
    few = [case.id for case in cases if not case.skip and case.id not in known]
    if few:
        names = ", ".join(few)
        notes.append(
            f"Too few rounds to know the spread: {names}. Raise --budget or choose with -k."
        )
    passed = {
        row.metric
        for row in results.calibrated.seen
        if row.gate == "fail"
        and row.sees_threshold is False
        and config.policy.undecided(row.metric) == "pass"
    }
    if passed:
        names = ", ".join(sorted(passed))
        notes.append(
            f"An undecided {names} costs no verdict, so no rounds are suggested for it: a change "
            "too small to be seen passes."
        )
    if results.promise.left_out and results.promise.status != "not_checked":
        names = ", ".join(results.promise.left_out)
        notes.append(f"The promise was not tested, for want of time, on {names}.")
    return notes


def _untrusted_reasons(results: CalibrationParts) -> list[str]:
    """Return the reasons not to rely on this calibration, or nothing."""
    reasons = []
    if results.interrupted:
        reasons.append("interrupted before the end")
    if not any(row.detectable is not None for row in results.calibrated.seen):
        reasons.append(
            "nothing was measured often enough to know a spread; raise --budget: "
            f"identical sides get the first {format_share(SAME_END)} of the time"
        )
    if results.promise.status == "not_kept":
        promised = format_share(results.promise.promised)
        reasons.append(f"the promise to find {promised} was not kept: {results.promise.reason}")
    alarms = [row for row in results.calibrated.seen if row.false_alarm and row.gate == "fail"]
    if alarms:
        names = ", ".join(f"{row.case} {row.metric}" for row in alarms)
        reasons.append(f"identical sides were called different: {names}")
    return reasons


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
            f"this machine has {len(parts)} physical cores for --parallel {count}",
            "Give as many sessions as there are cores at most.",
        )
    folder = cache_folder() / "jobs" / f"at-once-{mark_of(str(project.root), count)}"
    command = (
        *(
            sys.executable,
            "-P",
            "-m",
            "perfci",
            "compare",
            sha,
            sha,
            "--allow-same-commit",
            "--measure-same-code",
        ),
        *("--no-why", "--rounds", str(_ENDLESS_ROUNDS), "--budget", f"{budget_s / _SESSIONS:.0f}s"),
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
        concurrent = sessions.measured(f"{count} sessions at once", parts)
        last = sessions.measured("one session alone again", parts[-1:])
    answer = _concurrent_spread(
        count, alone=(*first, *last), concurrent=(concurrent[0], concurrent[-1])
    )
    keep_answer(project.root, machine, answer)
    return answer


@dataclass(frozen=True, slots=True)
class _Sessions:
    """Runs one command in several parts of the machine at once."""

    project: Project
    folder: Path
    command: tuple[str, ...]

    def _plan(self, count: int) -> Plan:
        names = tuple(f"session-{number}.json" for number in range(1, count + 1))
        return Plan(
            folder=str(self.project.caller.folder),
            commands=tuple((*self.command, "--json", str(self.folder / name)) for name in names),
            reports=names,
            time_limit_s=0.0,
        )

    def end_strays(self, parts: Sequence[MachineSlot]) -> None:
        """End the sessions that a killed calibration left behind. They would disturb new ones."""
        LocalEngine(JobFolder(self.folder), parts).cancel(self._plan(len(parts)))

    def measured(self, what: str, parts: Sequence[MachineSlot]) -> list[Report]:
        """Run one session in each of ``parts``, all at once, and return their reports.

        ``what`` names them in messages.
        """
        plan = self._plan(len(parts))
        job = JobFolder(self.folder)
        job.clear(plan)
        self.project.caller.step(f"measuring {what} …")
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
                "Try `perfci compare HEAD HEAD --allow-same-commit`, which says more.",
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


def _concurrent_spread(
    count: int, *, alone: Sequence[Report], concurrent: Sequence[Report]
) -> ConcurrentSpread:
    """Return how much wider the spread of ``concurrent`` reports is than that of ``alone`` reports.

    Reports at the same index were measured in the same part of the machine. MeasureError if there
    are too few pairs.
    """
    pairs = [
        (case, spread, other[case])
        for report, reference in zip(concurrent, alone, strict=True)
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
    """Return each case's spread: that of its pairs' log(head ÷ base), of the median latency.

    The standard error times the root of the number of pairs (``df`` + 1) is the spread.
    """
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
    """The factor by which pairs spread more in ``count`` sessions at once than in one alone.

    ``ratio`` is the factor, ``lo`` to ``hi`` its 95 % interval. The sessions at once measured
    ``pairs`` pairs of ``cases`` cases.
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
        """Return whether ``count`` sessions may measure at once. An uncertain answer is no."""
        return self.hi <= MOST_RATIO

    def __str__(self) -> str:
        return (
            f"{self.count} sessions at once spread {self.ratio:.2f} times as much as one alone "
            f"({self.lo:.2f} to {self.hi:.2f}; of {counted(self.cases, 'case')}, "
            f"measured on {self.created_at[:10]})"
        )


@dataclass(frozen=True, slots=True)
class MachineParts:
    """The physical ``cores`` and GPU ``devices`` to divide. A session needs ``workers`` cores."""

    cores: tuple[tuple[int, ...], ...]
    devices: tuple[str, ...]
    workers: int

    def parts(self, count: int) -> tuple[MachineSlot, ...]:
        """Return ``count`` equal parts. With 0, return as many parts as get enough cores."""
        near = cores_near(self.devices)
        return slots(self.cores, self.devices, workers=self.workers, concurrent=count, near=near)


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
    """Keep the answer for this machine, this project and the answer's number of sessions."""
    path = _answer_path(root, machine, answer.count)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, encode(answer))


def forget_answer(root: Path, machine: MachineParts, count: int) -> None:
    """Forget an earlier answer, so that a calibration that fails now allows nothing."""
    _answer_path(root, machine, count).unlink(missing_ok=True)


def kept_answer(root: Path, machine: MachineParts, count: int) -> ConcurrentSpread | None:
    """Return the calibration's answer for ``count`` parts, or None if it can't be read."""
    try:
        return decode(read_regular(_answer_path(root, machine, count)), ConcurrentSpread)
    except (FileNotFoundError, CodecError):
        return None


def _answer_path(root: Path, machine: MachineParts, count: int) -> Path:
    """Return the file of an answer. Its name depends on the machine: machines may share a cache."""
    parts = [(slot.cores, slot.device) for slot in machine.parts(count)]
    mark = mark_of(platform.node(), str(root), machine.workers, parts)
    return cache_folder() / "at-once" / f"{mark}.json"
