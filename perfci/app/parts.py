"""``compare`` and ``check`` in parts: shards submitted to an engine, waited for, and merged."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perfci.app.at_once import chosen_parts
from perfci.app.check import require_stored
from perfci.app.merge import MergedReport, merge_reports
from perfci.app.outputs import check_writable
from perfci.app.project import cache_folder
from perfci.app.reports import load_durations, load_report
from perfci.app.revisions import require_two_sides
from perfci.baselines.files import BaselineStore
from perfci.checkout.lock import take_if_free
from perfci.engine.folder import JobFolder
from perfci.engine.local import LocalEngine
from perfci.engine.plan import Engine, Plan, Slot, mark_of, time_limit_s
from perfci.engine.slurm import SlurmEngine, require_slurm, slurm_options
from perfci.engine.waiting import Gathered, gather
from perfci.errors import DamagedFile, MeasureError, PerfciError, UsageError
from perfci.machine.quiet import available_cores
from perfci.model.version import VERSION
from perfci.units import counted
from perfci.verdict.shards import Shard

if TYPE_CHECKING:
    from perfci.app.project import Project
    from perfci.session.workplace import Wanted

EngineName = Literal["local", "slurm"]
_PAUSE_S: Mapping[EngineName, float] = {"local": 0.5, "slurm": 5.0}


@dataclass(frozen=True, slots=True)
class Parts:
    """In how many ``shards`` a comparison is measured, and by which engine.

    ``at_once`` is how many of them a local engine runs at a time, 0 for as calibration allows.
    ``sbatch`` are words for Slurm. ``folder`` is the job's; None for one in the cache.
    ``options`` go to every shard's command as they were given.
    """

    engine: EngineName
    shards: int
    at_once: int = 0
    sbatch: tuple[str, ...] = ()
    folder: Path | None = None
    durations: Path | None = None
    log_folder: Path | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collected:
    """The merged reports, one an environment; ``kept`` is a folder with what is still to do."""

    reports: tuple[MergedReport, ...]
    kept: Path | None


def compare_in_parts(
    project: Project,
    base: str,
    head: str,
    parts: Parts,
    outputs: Mapping[str, Path],
    *,
    same: bool = False,
    benchmarks_of: str | None = None,
) -> Collected:
    """Measure ``base`` and ``head`` by ``parts``, and write the merged report to ``outputs``."""
    shas = commits(project, base, head, same=same)
    of = ("--benchmarks-of", project.repository.resolve(benchmarks_of).sha) if benchmarks_of else ()
    return _in_parts(project, ("compare", *shas), parts, parts.options + of, outputs)


def check_in_parts(
    project: Project, head: str, parts: Parts, outputs: Mapping[str, Path]
) -> Collected:
    """Measure ``head`` by ``parts`` against the stored baseline, and write the merged report.

    NothingStored where there is none; each shard confirms what it suspects by itself.
    """
    config = project.config
    require_stored(BaselineStore(project.root / config.baselines), config.baselines)
    side = project.side("head", head)
    _require_commits(side)
    command = ("check", side.resolved.sha)
    return _in_parts(project, command, parts, parts.options, outputs)


def _in_parts(
    project: Project,
    command: tuple[str, ...],
    parts: Parts,
    options: tuple[str, ...],
    outputs: Mapping[str, Path],
) -> Collected:
    check_writable(outputs)
    mark = mark_of(VERSION, parts.engine, str(project.root), command, parts.shards, options)
    folder = JobFolder((parts.folder or cache_folder() / "jobs" / mark).absolute())
    plan = _plan(project, folder, command, parts, options)
    engine = _engine(project, folder, parts, mark)
    folder.make()
    lock = take_if_free(folder.path / "lock")
    if lock is None:
        raise UsageError(
            "job-taken",
            f"another perfci waits for this comparison's shards, in {folder.path}",
            "Wait for that one, or end it: its command again takes up where it was.",
        )
    with lock:
        if folder.open(plan):
            project.caller.announce(f"taking up the shards in {folder.path}")
        if isinstance(engine, LocalEngine):
            folder.keep_slots(engine.slots)
        gathered = gather(
            plan,
            engine,
            folder,
            finished=_is_finished,
            shown=project.caller.step,
            pause_s=_PAUSE_S[parts.engine],
        )
        return _collected(project, plan, folder, gathered, outputs, parts)


def commits(project: Project, base: str, head: str, *, same: bool) -> tuple[str, str]:
    """Return both commits: what sessions of their own can check out by themselves."""
    sides = (project.side("base", base), project.side("head", head))
    _require_commits(*sides)
    if not (same or project.config.settings.inject):
        require_two_sides(*sides)
    return sides[0].resolved.sha, sides[1].resolved.sha


def _require_commits(*sides: Wanted) -> None:
    if any(side.resolved.dirty for side in sides):
        raise UsageError(
            "dirty-in-parts",
            "the working tree has changes, and sessions of their own measure commits",
            "Commit them, or name a commit as HEAD.",
        )


def _plan(
    project: Project,
    folder: JobFolder,
    command: tuple[str, ...],
    parts: Parts,
    options: tuple[str, ...],
) -> Plan:
    by = ("--durations", str(parts.durations.absolute())) if parts.durations else ()
    names = tuple(f"shard-{number}.json" for number in range(1, parts.shards + 1))
    commands = []
    for number, name in enumerate(names, start=1):
        logs = (str(parts.log_folder.absolute() / f"shard-{number}"),) if parts.log_folder else ()
        commands.append(
            (
                *(sys.executable, "-P", "-m", "perfci", *command, *options, *by),
                *("--log-format", "json"),  # an error is read again
                *("--shard", str(Shard(number, parts.shards)), "--json", str(folder.path / name)),
                *(("--log-dir", *logs) if logs else ()),
            )
        )
    return Plan(
        folder=str(project.caller.folder),
        commands=tuple(commands),
        reports=names,
        time_limit_s=time_limit_s(
            load_durations(parts.durations, project.caller.say),
            parts.shards,
            project.config.settings.budget,
        ),
        engine=parts.engine,
        configuration=mark_of(repr(project.config)),
    )


def _engine(project: Project, folder: JobFolder, parts: Parts, mark: str) -> Engine:
    if parts.engine == "slurm":
        require_slurm()
        return SlurmEngine(folder, f"perfci-{mark}", slurm_options(parts.sbatch))
    chosen, why = chosen_parts(project, parts.at_once, parts.shards)
    began = folder.slots()
    if began and began != chosen:
        chosen, why = _as_begun(folder, began, len(chosen))
    if why and parts.shards > 1:
        project.caller.announce(why)
    return LocalEngine(folder, chosen)


def _as_begun(
    folder: JobFolder, began: tuple[Slot, ...], at_once: int
) -> tuple[tuple[Slot, ...], str]:
    """Return as many of the parts that the job ``began`` with, and what to say of it.

    Another number of parts has other cores: they overlap with those where a shard still runs, and
    a shard of another number of cores is of another environment, which nothing merges with.
    """
    if not {core for one in began for core in one.cores} <= set(available_cores()):
        raise UsageError(
            "job-elsewhere",
            f"the shards in {folder.path} are measured on cores that this process may not use",
            "Give the command again where it was given first; or end what still runs of it, and "
            "remove the folder.",
        )
    chosen = began[:at_once]
    return chosen, f"{counted(len(chosen), 'shard')} at once, on the cores that this job began with"


def _is_finished(report: Path) -> bool:
    """Whether a report that is there is whole: one that was ended early is measured again."""
    try:
        return not load_report(report).interrupted
    except DamagedFile:
        return False


def _collected(
    project: Project,
    plan: Plan,
    folder: JobFolder,
    gathered: Gathered,
    outputs: Mapping[str, Path],
    parts: Parts,
) -> Collected:
    early = {number for number, one in gathered.reports.items() if not _is_finished(one)}
    losses = dict.fromkeys(early, "was ended early")
    losses |= {one: "is missing" for one in plan.numbers if one not in gathered.reports}
    notes = tuple(
        f"Shard {number} of {parts.shards} {losses[number]}: {gathered.ends[number]}."
        for number in sorted(losses)
    )
    if not gathered.reports:
        if gathered.cancelled:
            raise KeyboardInterrupt
        if refused := _refused_alike(plan, folder):
            raise refused
        raise MeasureError(
            "no-shard-reported",
            " ".join(notes),
            f"What they printed is in {folder.path}. The same command tries again.",
        )
    merged = merge_reports(
        tuple(gathered.reports.values()),
        project.config.policy,
        outputs,
        expect=parts.shards,
        notes=notes,
    )
    if notes:
        return Collected(merged, folder.path)
    folder.clear(plan)
    if parts.folder is None:
        shutil.rmtree(folder.path)
    return Collected(merged, None)


def _refused_alike(plan: Plan, folder: JobFolder) -> PerfciError | None:
    """Return the error that all shards ended by, where it is the same one."""
    first, *others = (folder.error(number) for number in plan.numbers)
    told = ("slug", "message", "advice")
    if not first or any(one.get(name) != first[name] for one in others for name in told):
        return None
    error = PerfciError(*(str(first[name]) for name in told))
    error.exit_code = int(first["exit_code"])
    return error
