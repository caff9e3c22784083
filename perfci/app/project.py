"""A project as a use case finds it: its repository, its configuration, and who called."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict, Unpack

from perfci.app.history.place import history_files, history_place
from perfci.app.notices import Announce, Say, silent, unheard
from perfci.app.outputs import check_writable
from perfci.checkout.repository import Repository, open_repository
from perfci.config.loading import Config, load_config
from perfci.errors import UsageError
from perfci.files import expanded
from perfci.machine.launcher import require_exec
from perfci.model.settings import DECIDING_ROUNDS
from perfci.session.executor import Executor, Processes
from perfci.session.state import Progress
from perfci.session.workplace import Shown, Surroundings, Wanted


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a use case: from which ``folder``, and what hears of its progress.

    ``say`` takes notices, ``announce`` what will be measured, ``step`` what is done besides
    measuring, ``progress`` each round.
    ``executor`` starts the workers.
    """

    folder: Path
    say: Say = silent
    announce: Announce = unheard
    step: Callable[[str], None] = unheard
    progress: Callable[[Progress], None] = unheard
    token_allowed: bool = False
    executor: Executor = field(default_factory=Processes)


@dataclass(frozen=True, slots=True)
class Project:
    """A repository and how perfci is configured for it."""

    repository: Repository
    config: Config
    caller: Caller

    @property
    def root(self) -> Path:
        """The repository's folder."""
        return self.repository.root

    def side(
        self, name: str, rev: str, python: str | None = None, option: str = "--python"
    ) -> Wanted:
        """Return a side to measure: ``rev`` resolved, run by ``python`` or the configured one."""
        launcher = self.config.launcher
        chosen = interpreter(python, self.config.python, self.root, option, launcher)
        return Wanted(name, self.repository.resolve(rev), chosen)

    def surroundings(self) -> Surroundings:
        """Return what a session is handed."""
        return Surroundings(
            repository=self.repository,
            config=self.config,
            cache=cache_folder(),
            inherited=dict(os.environ),
            shown=Shown(step=self.caller.step, progress=self.caller.progress),
            token_allowed=self.caller.token_allowed,
            executor=self.caller.executor,
        )

    def history_place(self, given: str | None) -> str:
        """Return which history is meant; ``given`` goes before the configured one."""
        return history_place(given, self.config, self.root, self.caller.say)

    def check_outputs(self, outputs: Mapping[str, Path], history: str | None = None) -> None:
        """Fail now where an output could not be written, or would replace another file of ours."""
        check_writable(outputs, history_files(history, self.config, self.root))


class Options(TypedDict, total=False):
    """What the command line may lay over a configuration; None leaves it as it is."""

    rounds: int | None
    budget: float | None
    seed: int | None
    strict: bool | None
    inject: Sequence[tuple[str, float]]
    launcher: str | None


def open_project(
    caller: Caller, config_path: Path | None = None, **options: Unpack[Options]
) -> Project:
    """Return the project around the caller's folder, with options laid over its configuration."""
    repository = open_repository(caller.folder)
    _as_text(repository.root, "repository's folder", "Rename the folder, or clone it elsewhere.")
    return Project(repository, configuration(repository.root, config_path, **options), caller)


def cache_folder() -> Path:
    """Return where perfci keeps worktrees and builds: PERFCI_CACHE_DIR or the user's cache.

    UsageError for a path that is no text: what goes to workers and comes back is UTF-8.
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


def configuration(root: Path, config_path: Path | None, **options: Unpack[Options]) -> Config:
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
        config = replace(config, launcher=_words(given))
    policy = replace(config.policy, looks=(settings.rounds, settings.max_rounds))
    if strict is not None:
        policy = replace(policy, strict=strict)
    return replace(config, settings=settings, policy=policy)


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
    """Return the absolute path of the Python that measures; UsageError where it isn't one.

    ``given`` as ``option`` goes before the ``configured`` one, whose relative path is the
    repository's; without either it is perfci's own. Where there is a ``launcher``, it is the Python
    of that name behind it, and the launcher is tried.
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
    found = shutil.which(str(expanded(named)))
    if found is None:
        raise UsageError(
            "no-python",
            f"{shown} is not an executable Python",
            f"Give the interpreter itself: {option} /path/to/venv/bin/python"
            if given is not None
            else "It is `python` in the configuration: name the interpreter of the environment "
            "that has torch, or override it with --python.",
        )
    python = str(Path(found).absolute())
    trouble = _trouble_with(python)
    if trouble:
        raise _unfit(shown, trouble)
    return python


def behind_launcher(given: str | None, configured: str, root: Path) -> str:
    """Return the name that Python has behind a launcher: what is here may not be what is there."""
    return given or (_of_repository(configured, root) if configured else sys.executable)


def named_python(given: str | None, configured: str, root: Path, launcher: Sequence[str]) -> str:
    """Return what ``interpreter`` does, with a launcher that wasn't tried yet."""
    if launcher:
        return behind_launcher(given, configured, root)
    return interpreter(given, configured, root)


def _unfit(shown: str, trouble: str) -> UsageError:
    return UsageError("no-python", f"{shown} {trouble}", "Workers need Python 3.11 or newer.")


def _of_repository(python: str, root: Path) -> str:
    """Return a path of the configuration as one from here; a bare name is looked up on PATH."""
    return str(root / expanded(python)) if os.sep in python else python


def _trouble_with(*python: str) -> str:
    """Return why ``python`` can't run workers; measured with, it would look like a broken side."""
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
