"""``--engine slurm`` and ``merge``: a comparison in shards, gathered and decided as one report."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.baselines.store import BaselineStore
from perfci.commands.check import require_stored
from perfci.commands.project import cache_folder, load_report
from perfci.commands.revisions import commit_pair, require_commits
from perfci.engine.job import JobFolder, Plan
from perfci.engine.slurm import (
    GatheredReports,
    SlurmEngine,
    gather,
    require_slurm,
    slurm_options,
)
from perfci.errors import DamagedFile, MeasureError, OutsideError, PerfciError
from perfci.outputs import STANDARD_OUTPUT, check_writable, files_of, rendered, write_files
from perfci.verdict.merge import Merged, merge
from perfci.verdict.shards import Shard

if TYPE_CHECKING:
    from perfci.commands.project import Project
    from perfci.model.report import Report
    from perfci.verdict.policy import Policy

_PAUSE_S = 5.0
"""Time between two looks at the shards, in s."""
_SET_UP_S = 600.0
"""Time limit of a shard's first check-out and build, and of the report; its budget is added."""
_ERROR_FIELDS = ("slug", "message", "advice")
"""The fields in which the errors of all shards must agree to be raised as one error."""
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")
"""The form of an environment's key, which goes into the names of files."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The number of ``shards`` of a comparison, and how Slurm measures them.

    ``sbatch`` are words for Slurm. The job's folder is made in ``folder``, None for the cache.
    ``options`` go to every shard's command as they were given.
    """

    shards: int
    sbatch: tuple[str, ...] = ()
    folder: Path | None = None
    log_folder: Path | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShardReports:
    """The merged reports, one per environment.

    ``kept`` is the folder of the job if shards are missing, else None.
    """

    reports: tuple[MergedReport, ...]
    kept: Path | None


def compare_in_parts(
    project: Project,
    base: str,
    head: str,
    parts: EngineOptions,
    outputs: Mapping[str, Path],
    *,
    same: bool = False,
    benchmarks_of: str | None = None,
) -> ShardReports:
    """Measure ``base`` and ``head`` by ``parts``, and write the merged report to ``outputs``."""
    shas = commit_pair(project, base, head, same=same)
    of = ("--benchmarks-of", project.repository.resolve(benchmarks_of).sha) if benchmarks_of else ()
    parts = replace(parts, options=(*parts.options, *of))
    return _ShardedCommand(project, ("compare", *shas), parts, outputs).run()


def check_in_parts(
    project: Project, head: str, parts: EngineOptions, outputs: Mapping[str, Path]
) -> ShardReports:
    """Measure ``head`` by ``parts`` against the stored baseline, and write the merged report.

    Raises NoBaseline if none is stored. Each shard confirms its own suspects.
    """
    config = project.config
    require_stored(BaselineStore(project.root / config.baselines), config.baselines)
    side = project.side("head", head)
    require_commits(side)
    return _ShardedCommand(project, ("check", side.resolved.sha), parts, outputs).run()


@dataclass(frozen=True, slots=True)
class _ShardedCommand:
    """A command whose shards Slurm measures, and where their merged report goes."""

    project: Project
    command: tuple[str, ...]
    parts: EngineOptions
    outputs: Mapping[str, Path]

    def run(self) -> ShardReports:
        parts, caller = self.parts, self.project.caller
        check_writable(self.outputs)
        require_slurm()
        folder = JobFolder.make((parts.folder or cache_folder() / "jobs").absolute())
        engine = SlurmEngine(folder, f"perfci-{folder.path.name}", slurm_options(parts.sbatch))
        plan = self._plan(folder)
        gathered = gather(plan, engine, shown=caller.step, pause_s=_PAUSE_S)
        return self._collected(plan, folder, gathered)

    def _plan(self, folder: JobFolder) -> Plan:
        parts = self.parts
        words = [sys.executable, "-P", "-m", "perfci", *self.command, *parts.options]
        words += ["--log-format", "json"]  # so that a shard's error can be read back
        names = tuple(f"shard-{number}.json" for number in range(1, parts.shards + 1))
        commands = []
        for number, name in enumerate(names, start=1):
            shard = str(Shard(number, parts.shards))
            options = ["--shard", shard, "--json", str(folder.path / name)]
            if parts.log_folder:
                options += ["--log-dir", str(parts.log_folder.absolute() / f"shard-{number}")]
            commands.append((*words, *options))
        return Plan(
            folder=str(self.project.caller.folder),
            commands=tuple(commands),
            reports=names,
            time_limit_s=self.project.config.settings.budget + _SET_UP_S,
        )

    def _collected(self, plan: Plan, folder: JobFolder, gathered: GatheredReports) -> ShardReports:
        """Merge the reports of the shards. The folder stays if one of them is missing."""
        early = {number for number, file in gathered.reports.items() if not _is_finished(file)}
        losses = dict.fromkeys(early, "was ended early")
        losses |= {n: "is missing" for n in plan.numbers if n not in gathered.reports}
        notes = tuple(
            f"Shard {number} of {self.parts.shards} {losses[number]}: {gathered.ends[number]}."
            for number in sorted(losses)
        )
        if not gathered.reports:
            if gathered.cancelled:
                raise KeyboardInterrupt
            raise _refused_alike(plan, folder) or MeasureError(
                "no-shard-reported",
                " ".join(notes),
                f"What they printed is in {folder.path}.",
            )
        files = tuple(gathered.reports.values())
        policy, count = self.project.config.policy, self.parts.shards
        merged = merge_reports(files, policy, self.outputs, expect=count, notes=notes)
        if notes:
            return ShardReports(merged, folder.path)
        shutil.rmtree(folder.path)
        return ShardReports(merged, None)


def _is_finished(report: Path) -> bool:
    """Return whether a report is whole, not of a shard that was ended early."""
    try:
        return not load_report(report).interrupted
    except DamagedFile:
        return False


class ShardsRefused(PerfciError):
    """The error with which the processes of all shards ended, and its exit code."""

    def __init__(self, slug: str, message: str, advice: str, exit_code: int) -> None:
        super().__init__(slug, message, advice)
        self.exit_code = exit_code


def _refused_alike(plan: Plan, folder: JobFolder) -> PerfciError | None:
    """Return the error with which all shards ended, or None if their errors differ."""
    first, *others = (folder.error(number) for number in plan.numbers)
    if not first or any(
        other.get(name) != first[name] for other in others for name in _ERROR_FIELDS
    ):
        return None
    slug, message, advice = (str(first[name]) for name in _ERROR_FIELDS)
    return ShardsRefused(slug, message, advice, int(first["exit_code"]))


@dataclass(frozen=True, slots=True)
class MergedReport:
    """One environment's report. ``incomplete``: a shard is missing.

    ``outputs`` are its own files. ``shown`` are the texts for standard output, by format.
    ``problem`` is why its files could not be written.
    """

    report: Report
    incomplete: bool
    outputs: Mapping[str, Path]
    shown: Mapping[str, str]
    problem: OutsideError | None


def merge_reports(
    files: Sequence[Path],
    policy: Policy,
    outputs: Mapping[str, Path],
    *,
    expect: int | None,
    notes: Sequence[str] = (),
) -> tuple[MergedReport, ...]:
    """Join the reports in ``files``, decide by ``policy``, and write ``outputs``.

    With several environments, file names get the environment's key before their suffix. Nothing is
    written if any report can't be rendered. ``notes`` are added to each report's.
    """
    named = [(str(file), load_report(file)) for file in files]
    merged = merge(named, policy, expect=expect, notes=notes)
    files_of_each = [
        outputs if len(merged) == 1 else _named_by_environment(outputs, report) for report in merged
    ]
    for chosen in files_of_each:
        check_writable(chosen)
    # all are rendered before the first is written, so that no environment lacks its report
    texts = [
        rendered(report.report, chosen)
        for report, chosen in zip(merged, files_of_each, strict=True)
    ]
    return tuple(map(_written, merged, files_of_each, texts))


def _written(
    merged: Merged, outputs: Mapping[str, Path], texts: Mapping[Path, str]
) -> MergedReport:
    problem = None
    try:
        write_files({path: text for path, text in texts.items() if path != STANDARD_OUTPUT})
    except OutsideError as error:
        problem = error
    shown = {name: texts[path] for name, path in outputs.items() if path == STANDARD_OUTPUT}
    return MergedReport(merged.report, bool(merged.missing), outputs, shown, problem)


def _named_by_environment(outputs: Mapping[str, Path], merged: Merged) -> dict[str, Path]:
    """Add the environment's key to each file's name. A key that perfci doesn't make is refused."""
    key = merged.report.environment.key
    if not _KEY.fullmatch(key):
        raise DamagedFile(
            "damaged-report",
            f"a report's environment has a key that perfci doesn't make: {key!r}",
            "Write the report again with --json.",
        )
    renamed = {
        name: path.with_name(f"{path.stem}.{key}{path.suffix}")
        for name, path in files_of(outputs).items()
    }
    return {**outputs, **renamed}
