"""A use case's project: repository, branch, configuration, history, and the caller.

The history has one file per repository, named by its first commit, because two projects may have
benchmarks of one name.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from msgspec import structs

from perfci.config.loading import Config, load_config
from perfci.errors import NoRepository, OutsideError, UsageError
from perfci.files import expanded, read_regular
from perfci.measure.checkout.git import Repository, open_repository
from perfci.measure.executor import Executor
from perfci.measure.machine.isolation import require_exec
from perfci.measure.progress import Progress
from perfci.measure.workplace import ProgressReporter, RequestedSide, SessionContext
from perfci.model.worker import DECIDING_ROUNDS
from perfci.outputs import Announce, Say, check_writable, silent

if TYPE_CHECKING:
    from perfci.history.history import OpenHistory
    from perfci.model.report import Report


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a use case: its ``folder``, and functions that take notices and progress.

    ``say`` takes notices, ``announce`` what will be measured, ``step`` other steps, ``progress``
    each round. ``executor`` starts the workers.
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
        """Return a side to measure: ``rev`` resolved, run by ``python`` or the configured one."""
        launcher = self.config.launcher
        chosen = interpreter(python, self.config.python, self.root, option, launcher)
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
        """Fail now where an output can't be written, or would replace a file of perfci's."""
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

    UsageError for a path that is no text, because workers exchange UTF-8.
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
    configured: str,
    root: Path,
    option: str = "--python",
    launcher: Sequence[str] = (),
) -> str:
    """Return the absolute path of the Python that measures. UsageError where it isn't one.

    ``given`` as ``option`` goes before the ``configured`` one, whose relative path is the
    repository's. Without either it is perfci's own. With a ``launcher``, it is the Python of that
    name behind it, and the launcher is tried.
    """
    if launcher:
        named = behind_launcher(given, configured, root)
        require_exec(launcher, named, os.environ)
        trouble = _trouble_with(*launcher, named)
        if trouble:
            raise _unfit(f"{named} behind the launcher", trouble)
        return named
    if given is None and not configured:
        return sys.executable
    named = _of_repository(configured, root) if given is None else given
    shown = configured if given is None else given
    executable = shutil.which(str(expanded(named)))
    if executable is None:
        raise UsageError(
            "no-python",
            f"{shown} is not an executable Python",
            f"Give the interpreter itself: {option} /path/to/venv/bin/python"
            if given is not None
            else "It is `python` in the configuration: name the interpreter of the environment "
            "that has torch, or override it with --python.",
        )
    python = str(Path(executable).absolute())
    trouble = _trouble_with(python)
    if trouble:
        raise _unfit(shown, trouble)
    return python


def behind_launcher(given: str | None, configured: str, root: Path) -> str:
    """Return the name that Python has behind a launcher, where other files may be than here."""
    return given or (_of_repository(configured, root) if configured else sys.executable)


def named_python(given: str | None, configured: str, root: Path, launcher: Sequence[str]) -> str:
    """Return the same as ``interpreter``, without trying the launcher."""
    if launcher:
        return behind_launcher(given, configured, root)
    return interpreter(given, configured, root)


def _unfit(shown: str, trouble: str) -> UsageError:
    return UsageError("no-python", f"{shown} {trouble}", "Workers need Python 3.11 or newer.")


def _of_repository(python: str, root: Path) -> str:
    """Return a path of the configuration as seen from here. A bare name is looked up on PATH."""
    return str(root / expanded(python)) if os.sep in python else python


def _trouble_with(*python: str) -> str:
    """Return why ``python`` can't run workers, or nothing.

    Measuring with it would look like a broken side.
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


@dataclass(frozen=True, slots=True)
class BranchOrder:
    """A branch by its ``name``, its commits (the oldest first), its tags, and notes on it.

    ``forge`` is the repository's page on the web, if it has one.
    """

    name: str = ""
    order: tuple[str, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    forge: str = ""


def repository_at(folder: Path) -> Repository | None:
    """Return the repository around ``folder``, or None."""
    from perfci.measure.checkout.git import open_repository

    try:
        return open_repository(folder)
    except NoRepository:
        return None


def branch_order(
    repository: Repository | None, wanted: str | None, recorded: Collection[str]
) -> BranchOrder:
    """Return the branch ``wanted`` (else the default one) as far as git can be believed.

    ``recorded`` are the commits in the history. A shallow clone, or one of another project,
    would make them all vanish: then the recorded order counts, and a note says so.
    """
    if repository is None:
        note = "There is no repository here: runs are in their recorded order, with no release."
        return BranchOrder(name=wanted or "", notes=(note,))
    from perfci.measure.checkout.commits import branch_of, commits, tags
    from perfci.measure.checkout.git import forge_of
    from perfci.trend.timelines import whole_commits

    rev = _known(repository, wanted) if wanted else repository.default_base() or "HEAD"
    name = wanted.removeprefix("origin/") if wanted else branch_of(repository, rev)
    if repository.is_shallow():
        note = (
            "This is a shallow clone: runs are in their recorded order, and no release is shown "
            "(`git fetch --unshallow`; actions/checkout: `fetch-depth: 0`)."
        )
        return BranchOrder(name=name, notes=(note,), forge=forge_of(repository))
    order = tuple(commit.sha for commit in reversed(commits(repository, rev)))
    named = {sha for sha in recorded if sha}
    if named and named.isdisjoint(order) and not whole_commits(named, order):
        note = (
            f"None of the recorded commits is on {name} of this repository: runs are in their "
            "recorded order."
        )
        return BranchOrder(name=wanted or "", notes=(note,))
    return BranchOrder(name, order, tags(repository), forge=forge_of(repository))


def _known(repository: Repository, wanted: str) -> str:
    """Return ``wanted``, or its remote's where this clone has no branch of that name (as in CI)."""
    from perfci.measure.checkout.git import attempt

    remote = f"origin/{wanted}"
    for rev in (wanted, remote):
        if (
            not rev.startswith("-")
            and attempt(
                repository.root, "rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}"
            ).status
            == 0
        ):
            return rev
    return repository.resolve(wanted).commit  # raises the error


def history_address(given: str | None, config: Config, root: Path) -> str:
    """Return what ``open_history`` is to open: as given, as configured, or the repository's own.

    A path in the configuration is relative to the repository's ``root``, a given one to here.
    """
    if given or "://" in config.history:
        return given or config.history
    if config.history:
        return str(root / expanded(config.history))
    return str(own_history(config, root))


def history_files(given: str | None, config: Config, root: Path) -> tuple[Path, ...]:
    """Return the files of the history that a command means, or nothing where a server has it.

    Nothing, too, where no project is known. A command that needs one reports that.
    """
    from perfci.history.address import files_at

    if given or "://" in config.history:
        return files_at(given or config.history)
    if config.history:
        return files_at(str(root / expanded(config.history)))
    try:
        return files_at(str(own_history(config, root)))
    except UsageError:
        return ()


def project_of(config: Config, root: Path) -> str | None:
    """Return this project's name, or None where it is not known, as in a shallow clone."""
    from perfci.measure.checkout.commits import first_commit

    return config.project or first_commit(root)


def require_own(history: OpenHistory, config: Config, root: Path) -> None:
    """Raise UsageError where ``history`` is another project's, as far as this one is known."""
    project = project_of(config, root)
    if project is not None:
        history.require_project(project)


def own_history(config: Config, root: Path) -> Path:
    """Return the history's file of the project that ``config`` names, else of the repository.

    UsageError where neither is known, outside a repository or in a shallow clone.
    """
    from perfci.history.address import own_file

    project = project_of(config, root)
    if project is None:
        raise UsageError(
            "whose-history",
            f"{root} belongs to no project that is known: it is not a repository, or has no "
            "commits, or is a shallow clone, which lacks the first one",
            "Name the history, --history PLACE, or the project, `project` in [tool.perfci].",
        )
    return own_file(project)


def load_report(path: Path) -> Report:
    """Return the report in ``path``. OutsideError for a missing or a damaged one."""
    from perfci.report.limits import MOST_BYTES

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
    """Return the report in ``content``. OutsideError, which names it, for anything else."""
    from perfci.report.reading import read_report

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OutsideError(
            "unreadable", f"{name} can't be read: not text", "Give it what --json wrote."
        ) from error
    return read_report(text, name)


def load_durations(path: Path | None, say: Say) -> Mapping[str, float]:
    """Return each case's time in s in the report at ``path``, or nothing without a report."""
    if path is None:
        return {}
    durations = load_report(path).durations
    if not durations:
        say(f"perfci: {path} has no durations. All cases count alike.", err=True)
    return durations
