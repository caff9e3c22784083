"""``--slurm`` and ``merge``: a comparison in shards, gathered and decided as one report."""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from perfci.baselines import ENVIRONMENT_KEY, BaselineStore
from perfci.commands.check import require_stored
from perfci.commands.project import cache_folder, load_report
from perfci.commands.revisions import require_commits, require_two_sides
from perfci.errors import DamagedFile, MeasureError, OutsideError, UsageError
from perfci.outputs import STANDARD_OUTPUT, check_writable, files_of, rendered, write_files
from perfci.verdict.merge import merge

if TYPE_CHECKING:
    from perfci.commands.project import Project
    from perfci.model.report import Report
    from perfci.report.clean import Clean
    from perfci.verdict.policy import Policy

_PAUSE_S = 5.0
"""Time between two looks at the shards."""
_SET_UP_S = 600.0
"""Time limit of a shard besides its budget: for check-out, build and report."""
_SETTLE_S = 15.0
"""Longest wait for a report after the array has ended: a shared folder may show it late."""
_CANCEL_S = 90.0
"""Longest wait for cancelled shards. Slurm gives each KillWait (30 s by default) to report."""
_OWN = ("array", "chdir", "error", "job-name", "output", "parsable", "wrap", "wait", "requeue")
"""Options of ``sbatch`` that perfci sets."""
_TASK = "$SLURM_ARRAY_TASK_ID"
_LOG_END = 2000
"""Characters of a log's end in which its last lines are looked for."""


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """The number of ``shards`` that Slurm measures, and options of ``sbatch``, without dashes.

    The job's folder is made in ``folder``, None for the cache. ``command`` are the options of every
    shard's command as they were given.
    """

    shards: int
    sbatch: tuple[str, ...] = ()
    folder: Path | None = None
    log_folder: Path | None = None
    command: tuple[str, ...] = ()


def compare_by_slurm(
    project: Project,
    base: str,
    head: str,
    options: SlurmOptions,
    outputs: Mapping[str, Path],
    *,
    same: bool = False,
    benchmarks_of: str | None = None,
) -> tuple[MergedReport, ...]:
    """Have ``base`` and ``head`` measured, and write the merged report to ``outputs``."""
    sides = (project.side("base", base), project.side("head", head))
    require_commits(*sides)
    if not (same or project.config.settings.inject):
        require_two_sides(*sides)
    words = ["compare", *(side.resolved.sha for side in sides)]
    if benchmarks_of:
        words += ["--benchmarks-of", project.repository.resolve(benchmarks_of).sha]
    return _submit_and_merge(project, words, options, outputs)


def check_by_slurm(
    project: Project, head: str, options: SlurmOptions, outputs: Mapping[str, Path]
) -> tuple[MergedReport, ...]:
    """Have ``head`` measured against the stored baseline, and write the merged report.

    Raises NoBaseline if none is stored. Each shard confirms its own suspects.
    """
    config = project.config
    require_stored(BaselineStore(project.root / config.baselines), config.baselines)
    side = project.side("head", head)
    require_commits(side)
    return _submit_and_merge(project, ["check", side.resolved.sha], options, outputs)


def _submit_and_merge(
    project: Project, words: Sequence[str], options: SlurmOptions, outputs: Mapping[str, Path]
) -> tuple[MergedReport, ...]:
    """Have an array of Slurm's measure the shards, and merge what they report."""
    check_writable(outputs)
    jobs = options.folder or cache_folder() / "jobs"
    jobs.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="job-", dir=jobs)).absolute()
    script = folder / "array.sh"
    command = shlex.join([sys.executable, "-P", "-m", "perfci", *words, *options.command])
    parts = [f"exec {command} --shard {_TASK}/{options.shards}"]
    parts += [f"--json {shlex.quote(str(folder))}/shard-{_TASK}.json"]
    if logs := options.log_folder:
        parts += [f"--log-dir {shlex.quote(str(logs.absolute()))}/shard-{_TASK}"]
    script.write_text(f"#!/bin/sh\n{' '.join(parts)}\n", encoding="utf-8")
    minutes = math.ceil((project.config.settings.budget + _SET_UP_S) / 60)
    interrupted = _run_array(
        [
            *("sbatch", "--parsable", "--wait", f"--job-name=perfci-{folder.name}"),
            *("--no-requeue", f"--array=1-{options.shards}", f"--time={minutes}"),
            *(f"--chdir={project.caller.folder}", f"--output={folder}/shard-%a.log"),
            *sbatch_options(options.sbatch),
            str(script),
        ],
        folder,
        lambda there: project.caller.step(f"{there} of {options.shards} shards have reported"),
    )
    return _collected(project, folder, options.shards, outputs, interrupted=interrupted)


def sbatch_options(words: Sequence[str]) -> tuple[str, ...]:
    """Return words such as ``partition=gpu exclusive`` as options of ``sbatch``."""
    options = []
    for word in (part for text in words for part in shlex.split(text)):
        name = word.lstrip("-").partition("=")[0]
        if name in {*_OWN, ""}:
            raise UsageError(
                "sbatch-option",
                f"--sbatch {word!r}: perfci sets this option itself, or sbatch lacks it",
                "Write options of sbatch by their long names, as in --sbatch partition=gpu.",
            )
        options.append(f"--{word.lstrip('-')}")
    return tuple(options)


def _run_array(command: Sequence[str], folder: Path, shown: Callable[[int], None]) -> bool:
    """Run an array until all its tasks have ended. Return whether Ctrl-C cancelled it.

    ``shown`` gets the number of reports that are there. OutsideError if Slurm refuses the array, or
    to cancel it. submitit was considered: it runs pickled functions, and adds little to ``sbatch``.
    """
    with (folder / "job").open("w+b") as job, (folder / "sbatch.log").open("w+b") as log:
        try:
            # out of reach of the terminal's Ctrl-C
            array = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=job, stderr=log, start_new_session=True
            )
        except FileNotFoundError as error:
            raise OutsideError(
                "slurm-failed", "sbatch not found", "Run this on a node that submits jobs."
            ) from error
        try:
            while array.returncode is None:
                _wait(array, _PAUSE_S)
                shown(_reports_in(folder))
            interrupted = False
        except KeyboardInterrupt:
            _cancel(array, folder)
            interrupted = True
        if array.returncode and not _text(job):  # it was not submitted
            raise OutsideError(
                "slurm-failed",
                f"sbatch failed: {_text(log) or f'exit code {array.returncode}'}",
                "Try the same options with `sbatch --test-only`.",
            )
        return interrupted


def _wait(array: subprocess.Popen[bytes], most_s: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        array.wait(most_s)


def _cancel(array: subprocess.Popen[bytes], folder: Path) -> None:
    """Cancel an array by its name, and wait until its tasks have reported and ended."""
    command = ("scancel", f"--name=perfci-{folder.name}")
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, start_new_session=True
    )
    if done.returncode != 0:
        raise OutsideError(
            "slurm-failed",
            f"the array may still be waiting or running: scancel failed: {done.stderr.strip()}",
            f"Cancel it once Slurm answers: {' '.join(command)}.",
        )
    _wait(array, _CANCEL_S)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace").strip()


def _reports_in(folder: Path) -> int:
    return len(list(folder.glob("shard-*.json")))


def _collected(
    project: Project, folder: Path, count: int, outputs: Mapping[str, Path], *, interrupted: bool
) -> tuple[MergedReport, ...]:
    """Merge the reports of the shards. The folder stays if one of them is missing."""
    end = time.monotonic() + _SETTLE_S
    while not interrupted and _reports_in(folder) < count and time.monotonic() < end:
        time.sleep(0.5)
    files = {number: folder / f"shard-{number}.json" for number in range(1, count + 1)}
    lost = [number for number, file in files.items() if not file.exists()]
    if len(lost) == count:
        if interrupted:
            raise KeyboardInterrupt
        raise MeasureError(
            "no-shard-reported",
            f"no shard has reported. The first one's last lines: {_last_lines(folder, 1, 6)}",
            f"The shards' output is in {folder}.",
        )
    notes = tuple(
        f"Shard {number} of {count} is missing. Its last line: {_last_lines(folder, number, 1)}"
        for number in lost
    )
    there = [file for number, file in files.items() if number not in lost]
    merged = merge_reports(there, project.config.policy, outputs, expect=count, notes=notes)
    if lost:
        project.caller.say(f"perfci: the shards' output is in {folder}", err=True)
    else:
        shutil.rmtree(folder)
    return merged


def _last_lines(folder: Path, number: int, count: int) -> str:
    try:
        text = (folder / f"shard-{number}.log").read_text(errors="replace")
    except FileNotFoundError:
        return "nothing"
    return "\n".join(text[-_LOG_END:].split("\n")[-count - 1 :]).strip() or "nothing"


@dataclass(frozen=True, slots=True)
class MergedReport:
    """One environment's report.

    ``outputs`` are its own files. ``shown`` are the texts for standard output.
    """

    report: Report
    outputs: Mapping[str, Path]
    shown: Sequence[Clean]


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
    results: list[MergedReport] = []
    texts: dict[Path, str] = {}
    for report in merged:
        own = outputs if len(merged) == 1 else _named_by_environment(outputs, report)
        check_writable(own)
        made = rendered(report, own)
        shown = [text for path, text in made.items() if path == STANDARD_OUTPUT]
        texts |= {path: text for path, text in made.items() if path != STANDARD_OUTPUT}
        results.append(MergedReport(report, own, shown))
    write_files(texts)
    return tuple(results)


def _named_by_environment(outputs: Mapping[str, Path], report: Report) -> dict[str, Path]:
    """Add the environment's key to each file's name. A key that perfci doesn't make is refused."""
    key = report.environment.key
    if not ENVIRONMENT_KEY.fullmatch(key):
        raise DamagedFile(
            "damaged-file",
            f"a report's environment has a key that perfci doesn't make: {key!r}",
            "Write the report again with --json.",
        )
    renamed = {
        name: path.with_name(f"{path.stem}.{key}{path.suffix}")
        for name, path in files_of(outputs).items()
    }
    return {**outputs, **renamed}
