"""A use case's project: its caller, repository, configuration and Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfci.commands.history import history_files
from perfci.config.loading import Config, ignored_files, load_config
from perfci.errors import NoRepository, OutsideError, UsageError
from perfci.files import expanded, read_regular, reading
from perfci.measure.checkout.git import Repository, open_repository
from perfci.measure.executor import Executor
from perfci.measure.progress import Progress
from perfci.measure.workplace import ProgressReporter, RequestedSide, SessionContext
from perfci.model.report import Report
from perfci.outputs import Announce, Say, check_writable, silent
from perfci.report.exporters.json import MOST_BYTES
from perfci.report.reading import read_report


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a use case: its ``folder``, and functions that take notices and progress.

    ``say`` takes notices, ``announce`` what will be measured, ``step`` other steps, ``progress``
    each round. ``token_allowed`` measures although benchmarks could read a token. ``executor``
    starts the workers. ``config_path`` names the configuration's file (None: the usual one), and
    ``changes`` are its keys with other values for this run.
    """

    folder: Path
    config_path: Path | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
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

    def side(self, name: str, rev: str, python: str | None = None) -> RequestedSide:
        """Return a side to measure: ``rev`` resolved, run by ``python`` or the configured one.

        ``python`` was given as ``--NAME-python``.
        """
        chosen = interpreter(self.config, self.root, python, f"--{name}-python")
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

    def check_outputs(self, outputs: Mapping[str, Path]) -> None:
        """Raise an error if an output can't be written, or would replace a file of the history."""
        check_writable(outputs, history_files(self.config, self.root))


def open_project(caller: Caller) -> Project:
    """Return the project around the caller's folder."""
    repository = open_repository(caller.folder)
    given = caller.config_path
    _require_utf8(
        repository.root, "repository's folder", "Rename the folder, or clone it elsewhere."
    )
    for file in () if given else ignored_files(repository.root, caller.folder.resolve()):
        path = file.relative_to(repository.root)
        caller.say(f"note: {path} is not read. `--config {path}` reads it.", err=True)
    return Project(repository, load_config(repository.root, given, caller.changes), caller)


def cache_folder() -> Path:
    """Return the folder for worktrees and builds: PERFCI_CACHE_DIR or the user's cache.

    UsageError for a path that isn't UTF-8, because workers exchange UTF-8.
    """
    from platformdirs import user_cache_path

    chosen = os.environ.get("PERFCI_CACHE_DIR")
    folder = Path(chosen).absolute() if chosen else user_cache_path("perfci")
    return _require_utf8(
        folder, "cache folder", "Set PERFCI_CACHE_DIR to a folder with a UTF-8 name."
    )


def _require_utf8(folder: Path, what: str, advice: str) -> Path:
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = os.fsencode(folder).decode("utf-8", "backslashreplace")
        raise UsageError(
            "path-not-text", f"the name of the {what} {shown} is not UTF-8", advice
        ) from error
    return folder


def interpreter(
    config: Config,
    root: Path,
    given: str | None = None,
    option: str = "",
    *,
    try_launcher: bool = True,
) -> str:
    """Return the absolute path of the Python that measures. UsageError if it isn't a Python.

    It is ``given`` by ``option``, else configured, else perfci's own. A configured relative path
    starts at the repository's root. With a ``launcher``, the path isn't looked up here, because
    there may be other files behind the launcher. Instead the launcher is tried with it, unless
    ``try_launcher`` is False.
    """
    configured = config.python  # a bare name is looked up on PATH
    if os.sep in configured:
        configured = str(root / expanded(configured))
    named = given or configured or sys.executable
    if named == sys.executable and not config.launcher:
        return named
    if config.launcher:
        python = named
        trouble = _trouble_with(*config.launcher, named) if try_launcher else ""
    else:
        python = shutil.which(str(expanded(named))) or ""
        python = str(Path(python).absolute()) if python else ""
        trouble = _trouble_with(python) if python else "is not an executable Python"
    if trouble:
        source = option if given else "--python, or `python` in the configuration"
        if config.launcher:
            source += f", or `launcher`, {' '.join(config.launcher)}"
        raise UsageError(
            "no-python",
            f"{' '.join((*config.launcher, named))} {trouble}",
            f"Workers need Python 3.11 or newer: correct {source}. In your project's environment, "
            "`python -c 'import sys; print(sys.executable)'` prints the path.",
        )
    return python


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
    if done.returncode or name != "Python" or len(numbers) != 2:
        output = " ".join((done.stderr or done.stdout).split())
        return f"is not a Python, and printed: {output[:300]}" if output else "is not a Python"
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
    with reading(path, "Name a file that --json wrote."):
        content = read_regular(path, MOST_BYTES)
    return report_in(content, str(path))


def report_in(content: bytes, name: str) -> Report:
    """Return the report in ``content``. OutsideError, with ``name`` in it, for anything else."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OutsideError(
            "unreadable", f"{name} can't be read: not text", "Give it a file that --json wrote."
        ) from error
    return read_report(text, name)
