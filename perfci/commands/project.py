"""A use case's project: its caller, repository, configuration and Python, and remembered cases.

Remembered are the cases that failed in the last comparison (for ``--last-failed``), and how long
all cases took. No verdict depends on them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from msgspec import structs

from perfci.commands.history import history_address, history_files
from perfci.config.loading import Config, load_config
from perfci.errors import DamagedFile, NoRepository, OutsideError, UsageError
from perfci.files import expanded, read_regular, write_file
from perfci.measure.budget import CaseRecord
from perfci.measure.checkout.git import Repository, open_repository
from perfci.measure.executor import Executor
from perfci.measure.progress import Progress
from perfci.measure.workplace import ProgressReporter, RequestedSide, SessionContext
from perfci.model.codec import CodecError, decode, encode
from perfci.model.finding import TWO_SPEEDS
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.status import traits
from perfci.outputs import Announce, Say, check_writable, silent
from perfci.units import counted, first_of

if TYPE_CHECKING:
    from perfci.model.report import Report


_WARY = 10
"""Comparisons with twice the least rounds, after a comparison in which a case had two speeds."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a use case: its ``folder``, and functions that take notices and progress.

    ``say`` takes notices, ``announce`` what will be measured, ``step`` other steps, ``progress``
    each round. ``token_allowed`` measures although benchmarks could read a token. ``executor``
    starts the workers.
    """

    folder: Path
    say: Say = silent
    announce: Announce = silent
    step: Callable[[str], None] = silent
    progress: Callable[[Progress], None] = silent
    token_allowed: bool = False
    executor: Executor = field(default_factory=Executor)


@dataclass(frozen=True, slots=True)
class Project:
    """A repository and its configuration."""

    repository: Repository
    config: Config
    caller: Caller

    @property
    def root(self) -> Path:
        """Return the repository's folder."""
        return self.repository.root

    def side(
        self, name: str, rev: str, python: str | None = None, option: str = "--python"
    ) -> RequestedSide:
        """Return a side to measure: ``rev`` resolved, run by ``python`` or the configured one.

        ``option`` is the option that gave ``python``, for messages.
        """
        chosen = interpreter(python, self.config, self.root, option)
        return RequestedSide(name, self.repository.resolve(rev), chosen)

    def session_context(self) -> SessionContext:
        """Return the context of a session."""
        return SessionContext(
            repository=self.repository,
            config=self.config,
            cache=cache_folder(),
            inherited=dict(os.environ),
            shown=ProgressReporter(step=self.caller.step, progress=self.caller.progress),
            token_allowed=self.caller.token_allowed,
            executor=self.caller.executor,
        )

    def history_address(self, given: str | None) -> str:
        """Return the address of the history. ``given`` goes before the configured one."""
        return history_address(given, self.config, self.root)

    def check_outputs(self, outputs: Mapping[str, Path], history: str | None = None) -> None:
        """Raise an error if an output can't be written, or would replace a file of the history."""
        check_writable(outputs, history_files(history, self.config, self.root))


class ConfigOptions(TypedDict, total=False):
    """Options of the command line that change the configuration. None leaves it as it is."""

    rounds: int | None
    budget: float | None
    seed: int | None
    strict: bool | None
    inject: Sequence[tuple[str, float]]
    launcher: str | None


def open_project(
    caller: Caller, config_path: Path | None = None, **options: Unpack[ConfigOptions]
) -> Project:
    """Return the project around the caller's folder, with options laid over its configuration."""
    repository = open_repository(caller.folder)
    _as_text(repository.root, "repository's folder", "Rename the folder, or clone it elsewhere.")
    return Project(repository, configuration(repository.root, config_path, **options), caller)


def cache_folder() -> Path:
    """Return the folder for worktrees and builds: PERFCI_CACHE_DIR or the user's cache.

    UsageError for a path that isn't UTF-8, because workers exchange UTF-8.
    """
    from platformdirs import user_cache_path

    chosen = os.environ.get("PERFCI_CACHE_DIR")
    folder = Path(chosen).absolute() if chosen else user_cache_path("perfci")
    return _as_text(folder, "cache folder", "Set PERFCI_CACHE_DIR to a folder whose name is.")


def _as_text(folder: Path, what: str, advice: str) -> Path:
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = os.fsencode(folder).decode("utf-8", "backslashreplace")
        raise UsageError(
            "path-not-text", f"the name of the {what} {shown} is not UTF-8", advice
        ) from error
    return folder


def configuration(root: Path, config_path: Path | None, **options: Unpack[ConfigOptions]) -> Config:
    """Return the configuration with the command line's options laid over it."""
    config = load_config(root, config_path)
    settings, strict = config.settings, options.get("strict")
    if (rounds := options.get("rounds")) is not None:
        # too few rounds to decide are a quick look, which ends after them
        most = rounds if rounds < DECIDING_ROUNDS else max(rounds, settings.max_rounds)
        settings = replace(settings, rounds=rounds, max_rounds=most)
    if (budget := options.get("budget")) is not None:
        settings = replace(settings, budget=budget)
    if (seed := options.get("seed")) is not None:
        settings = replace(settings, seed=seed)
    if inject := options.get("inject"):
        if len(dict(inject)) < len(inject):
            raise UsageError(
                "injected-twice", "--inject names a metric twice", "Give each metric one share."
            )
        settings = replace(settings, inject=dict(inject))
    if given := options.get("launcher"):
        config = structs.replace(config, launcher=_words(given))
    policy = replace(config.policy, looks=(settings.rounds, settings.max_rounds))
    if strict is not None:
        policy = replace(policy, strict=strict)
    return structs.replace(config, settings=settings, policy=policy)


def _words(launcher: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(launcher))
    except ValueError as error:
        raise UsageError(
            "bad-launcher",
            f"--launcher {launcher!r} can't be read: {error}",
            "It is a command without a shell, such as 'numactl --membind=0'.",
        ) from error


def interpreter(
    given: str | None,
    config: Config,
    root: Path,
    option: str = "--python",
    *,
    try_launcher: bool = True,
) -> str:
    """Return the absolute path of the Python that measures. UsageError if it isn't a Python.

    It is ``given`` by ``option``, else configured, else perfci's own. A configured relative path
    starts at the repository's root. With a ``launcher``, the path isn't looked up here, because
    there may be other files behind the launcher. Instead the launcher is tried with it, unless
    ``try_launcher`` is False.
    """
    configured, launcher = config.python, config.launcher
    if launcher:
        named = given or (relative_to_root(configured, root) if configured else sys.executable)
        if not try_launcher:
            return named
        trouble = _trouble_with(*launcher, named)
        if trouble:
            raise _unfit(f"{named} behind the launcher", trouble)
        return named
    if given is None and not configured:
        return sys.executable
    named = relative_to_root(configured, root) if given is None else given
    shown = configured if given is None else given
    executable = shutil.which(str(expanded(named)))
    if executable is None:
        raise UsageError(
            "no-python",
            f"{shown} is not an executable Python",
            f"Give the interpreter itself: {option} .venv/bin/python"
            if given is not None
            else "It is `python` in the configuration, looked up from the repository's root: make "
            f"that environment, or name an interpreter, such as {sys.executable}.",
        )
    python = str(Path(executable).absolute())
    trouble = _trouble_with(python)
    if trouble:
        raise _unfit(shown, trouble)
    return python


def _unfit(shown: str, trouble: str) -> UsageError:
    return UsageError("no-python", f"{shown} {trouble}", "Workers need Python 3.11 or newer.")


def relative_to_root(python: str, root: Path) -> str:
    """Return a configured path, which starts at ``root``. A bare name is looked up on PATH."""
    return str(root / expanded(python)) if os.sep in python else python


def _trouble_with(*python: str) -> str:
    """Return why ``python`` can't run workers, or an empty text.

    Without this check, such a Python would look like a broken side.
    """
    probe = [*python, "-c", "import sys; print('Python', *sys.version_info[:2])"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return "gives no answer"
    except OSError as error:
        return f"can't be started: {error.strerror}"
    name, *numbers = done.stdout.split() or [""]
    if name != "Python" or len(numbers) != 2:
        return "is no Python"
    version = tuple(map(int, numbers))
    return "" if version >= (3, 11) else f"is Python {'.'.join(numbers)}"


def repository_at(folder: Path) -> Repository | None:
    """Return the repository around ``folder``, or None."""
    try:
        return open_repository(folder)
    except NoRepository:
        return None


def load_report(path: Path) -> Report:
    """Return the report in ``path``. OutsideError for a missing or a damaged one."""
    from perfci.report.exporters.json import MOST_BYTES

    try:
        content = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise OutsideError(
            "unreadable",
            f"{path} can't be read: {error.strerror}",
            "Name a file that --json wrote.",
        ) from error
    return report_in(content, str(path))


def report_in(content: bytes, name: str) -> Report:
    """Return the report in ``content``. OutsideError, with ``name`` in it, for anything else."""
    from perfci.report.reading import read_report

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OutsideError(
            "unreadable", f"{name} can't be read: not text", "Give it what --json wrote."
        ) from error
    return read_report(text, name)


@dataclass(frozen=True, slots=True)
class RememberedCases:
    """The remembered cases. ``sides`` and ``at`` are the sides and the time of the last comparison.

    Both are empty before the first comparison. ``failed`` has each case's metrics that regressed,
    and no metrics for a case or file that failed. ``measured`` has how long each case took.
    """

    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    measured: Mapping[str, CaseRecord] = field(default_factory=dict)
    sides: str = ""
    at: str = ""
    schema: Literal["perfci.remembered/2"] = "perfci.remembered/2"


class CaseMemory:
    """The file that remembers the cases of a repository, for all its worktrees."""

    def __init__(self, cache: Path, repository: Repository) -> None:
        self.path = cache / repository.id / "last_failed.json"

    def read(self) -> RememberedCases:
        """Return the remembered cases, or empty ones without a file. DamagedFile if damaged."""
        try:
            return decode(read_regular(self.path), RememberedCases)
        except FileNotFoundError:
            return RememberedCases()
        except (CodecError, OSError) as error:
            raise DamagedFile(
                "damaged-memory",
                f"{self.path}, which says what failed last, can't be read: {error}",
                "Leave out --last-failed. The next comparison writes the file again.",
            ) from error

    def keep_failed(self, report: Report, *, sides: str, whole: bool) -> None:
        """Keep what failed in ``report``, and how long its cases took.

        OSError if the cache folder can't be written.

        Failed cases that the report lacks stay, unless it covers the ``whole`` project. So do cases
        with a metric that the report couldn't decide.
        """
        before = self._before()
        failed = failed_after(before.failed, report, whole=whole)
        measured = measured_after(before.measured, report)
        if whole:
            measured = {
                row.case: measured[row.case] for row in report.results if row.case in measured
            }
        self._write(RememberedCases(failed, measured, sides, report.created_at))

    def measured(self) -> Mapping[str, CaseRecord]:
        """Return what is known of the cases from before."""
        return self._before().measured

    def last_failed(self) -> RememberedCases:
        """Return the kept cases. UsageError if none failed, or nothing was compared yet."""
        kept = self.read()
        if kept.failed:
            return kept
        raise UsageError(
            "nothing-failed",
            f"no case regressed or failed in the last comparison, {kept.sides} of {kept.at}"
            if kept.sides
            else "no comparison of this repository was made on this machine yet",
            "Leave out --last-failed to measure all cases.",
        )

    def _before(self) -> RememberedCases:
        try:
            return self.read()
        except DamagedFile:  # the next write replaces it
            return RememberedCases()

    def _write(self, kept: RememberedCases) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_file(self.path, encode(kept))


def failed_after(
    before: Mapping[str, tuple[str, ...]], report: Report, *, whole: bool
) -> dict[str, tuple[str, ...]]:
    """Return what failed after ``report``: its cases as it decided them, the others as before.

    A metric that regressed before and is undecided now stays, because it may still be worse.
    """
    broken = {failure.case for failure in report.failures}
    failed: dict[str, list[str]] = {}
    for row in report.results:
        again = row.metric in before.get(row.case, ()) and row.status == "inconclusive"
        worse = traits(row.status).sense == "worse"
        if again or (worse and row.gate != "info" and not row.accepted):
            failed.setdefault(row.case, []).append(row.metric)
    seen = broken | {row.case for row in report.results if row.status != "not_measured"}
    kept = {case: names for case, names in before.items() if case not in seen and not whole}
    now = {case: tuple(names) for case, names in failed.items() if case not in broken}
    return kept | dict.fromkeys(sorted(broken), ()) | now


def measured_after(before: Mapping[str, CaseRecord], report: Report) -> dict[str, CaseRecord]:
    """Return what is known of the cases after ``report``.

    A case's time includes its share of the time that the session took besides its cases. A case
    with too few rounds to be decided, or that ran no changed file, keeps its earlier time.
    """
    within_s = sum(report.durations.values())
    whole = max(1.0, report.timing.wall_s / within_s) if report.timing and within_s else 1.0
    regressed = {row.case for row in report.results if row.status == "regressed"}
    of_two_speeds = {
        row.case
        for row in report.results
        if any(remark.code == TWO_SPEEDS for remark in row.findings)
    }
    decided = {
        row.case
        for row in report.results
        if row.status != "untouched" and row.head and row.head.workers >= DECIDING_ROUNDS
    }
    measured = dict(before)
    for case, seconds in report.durations.items():
        known = before.get(case, CaseRecord())
        measured[case] = CaseRecord(
            seconds=round(seconds * whole, 1) if case in decided else known.seconds,
            at=report.created_at,
            regressed=known.regressed + (case in regressed),
            wary=_WARY if case in of_two_speeds else max(0, known.wary - 1),
        )
    return measured


def taken_text(kept: RememberedCases) -> str:
    """Return the cases that ``--last-failed`` measures, and their comparison, in words."""
    shown = first_of(list(kept.failed), 5)
    return f"--last-failed: {counted(len(kept.failed), 'case')} of {kept.sides}, {kept.at}: {shown}"
