"""Running git: away from the variables of a hook, without the user's hooks, with clear errors."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from perfci.checkout.disk import disk_error
from perfci.errors import OutsideError, PerfciError

_SETTINGS = (
    "core.hooksPath=/dev/null",  # a checkout of ours is none of the user's hooks' business
    "core.fsmonitor=false",  # it would start a daemon for every worktree
    "core.splitIndex=false",  # else a copy of the index still writes beside the original
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=0",
    "advice.detachedHead=false",
    "advice.addEmbeddedRepo=false",
    "log.showSignature=false",
)
_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}

_HOOK_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
"""From ``git rev-parse --local-env-vars``, less the configuration (it carries safe.directory).

Under a git hook these name the user's index: a checkout that believed them would write it.
"""

_BUSY = re.compile(
    r"\.lock'?: File exists|could not lock|failed to read .*worktrees/", re.IGNORECASE
)
_TRIES = 6
_FIRST_WAIT_S = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one git command ended. ``output`` is without its last newline."""

    status: int
    output: str
    error: str


def attempt(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    given: IO[str] | None = None,
) -> Outcome:
    """Run git in ``folder`` and return how it ended, whatever its exit status.

    ``given`` is a file that it reads as its standard input. Waits a little and tries again where
    another git holds a lock. OutsideError without git.
    """
    wait = _FIRST_WAIT_S
    for _ in range(_TRIES - 1):
        outcome = _once(folder, arguments, environment or {}, given)
        if outcome.status == 0 or not _BUSY.search(outcome.error):
            return outcome
        time.sleep(wait)
        wait *= 2
    return _once(folder, arguments, environment or {}, given)


def git(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run git in ``folder`` and return its output. OutsideError where it fails."""
    outcome = attempt(folder, *arguments, environment=environment)
    if outcome.status != 0:
        raise failure(outcome, *arguments)
    return outcome.output


def failure(outcome: Outcome, *arguments: str) -> PerfciError:
    """Return the error that says what git said, and what to do."""
    said = readable(outcome.error or outcome.output).strip() or f"exit status {outcome.status}"
    doing = f"git {' '.join(arguments[:2])}"
    if _BUSY.search(said):
        return OutsideError(
            "git-busy",
            f"{doing} found the repository locked: {said}",
            "Another git is at work, or one was killed: see that none runs, then remove the "
            "lock file it names.",
        )
    return disk_error(doing, said) or OutsideError(
        "git-failed", f"{doing} failed: {said}", "Run the same by hand to see more."
    )


def readable(text: str) -> str:
    """Return ``text`` with the bytes that were no UTF-8 as question marks."""
    return text.encode("utf-8", "replace").decode()


_OLDEST_GIT = (2, 31)


def check_version() -> None:
    """Raise OutsideError where git is missing or too old."""
    found = tuple(_gitpython().Git().version_info[:2])
    if found < _OLDEST_GIT:
        raise OutsideError(
            "old-git",
            f"git is {'.'.join(map(str, found))}",
            f"perfci needs {'.'.join(map(str, _OLDEST_GIT))} or newer.",
        )


def _once(
    folder: Path,
    arguments: tuple[str, ...],
    environment: Mapping[str, str],
    given: IO[str] | None = None,
) -> Outcome:
    library = _gitpython()
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    try:
        status, output, error = library.Git(folder).execute(
            [*_without_hook_variables(), "git", *settings, *arguments],
            env={**_ENVIRONMENT, **environment},
            istream=given,
            with_extended_output=True,
            with_exceptions=False,
        )
    except library.GitCommandNotFound as missing:  # a folder that went away looks the same
        reason = f"{folder} is gone" if not folder.is_dir() else "the command git was not found"
        raise OutsideError("no-git", reason, _NO_GIT_ADVICE) from missing
    return Outcome(status, output, error)


_NO_GIT_ADVICE = "Install git 2.31 or newer and see that it is on PATH."


def _without_hook_variables() -> list[str]:
    """GitPython can set variables for a command, but not take one away."""
    present = [name for name in _HOOK_VARIABLES if name in os.environ]
    return ["env", *(f"--unset={name}" for name in present)] if present else []


def _gitpython() -> Any:
    try:
        import git as library  # here, because it takes 90 ms
    except ModuleNotFoundError as error:
        raise OutsideError(
            "no-gitpython", f"{error.name} is not installed", "Install perfci again."
        ) from error
    except ImportError as error:  # GitPython's way to say, on fourteen lines, that there is no git
        raise OutsideError("no-git", "the command git was not found", _NO_GIT_ADVICE) from error
    return library
