"""Running a build's commands: in their own process group, to a log, within their time."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from perfci.errors import OutsideError, PerfciError, UnbuiltCommit, UsageError
from perfci.measure.checkout.disk import disk_error
from perfci.measure.checkout.git import ResolvedRev
from perfci.measure.checkout.submodules import Submodule
from perfci.units import format_duration

# What a side's build consists of, read and checked, and the key under which it is kept.

BUILD_TIMEOUT_S = 1800.0
_QUOTED_OR_SHELL = re.compile(
    r"""\\. | '[^']*' | "(?:\\.|[^"\\])*" | (?P<shell> && | \|\| | >> | \$\( | [;|&<>`] )""",
    re.VERBOSE | re.DOTALL,
)
"""What is quoted is skipped, so that what is found as ``shell`` stands outside."""


@dataclass(frozen=True, slots=True)
class BuildRecipe:
    """A build: the tree (and a commit of it), what is run in it, and how. ``timeout`` is in s.

    ``enter`` is a command that goes before each: it takes them out of others' reach. Where the
    build has its ``own_environment``, ``{python}`` in its commands is still to be replaced.
    ``submodules`` are those that are checked out before the first command.
    """

    tree: str
    commit: str
    commands: tuple[tuple[str, ...], ...]
    python: str
    environment: Mapping[str, str] = field(repr=False)  # may hold what no log should show
    timeout: float = BUILD_TIMEOUT_S
    enter: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    own_environment: bool = False
    submodules: tuple[Submodule, ...] = ()

    @property
    def checks_out_submodules(self) -> bool:
        """Return whether a command names git's ``submodule``, and so fetches them itself."""
        return any("submodule" in word for command in self.commands for word in command)

    @property
    def key(self) -> str:
        """Equal for builds that can stand for each other: same tree, commands and Python.

        So are the variables that are ``passed`` by configuration. The rest of the environment and
        what is installed in that Python are not part of it.
        """
        parts = [self.tree, self.python, *("\0".join(command) for command in self.commands)]
        parts += ["own environment"] if self.own_environment else ["watched"]
        parts += [f"{submodule.path} at {submodule.commit}" for submodule in self.submodules]
        parts += [
            f"{name}={self.environment[name]}" for name in self.passed if name in self.environment
        ]
        text = "\0\0".join(parts)
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def make_recipe(
    resolved: ResolvedRev,
    build: Sequence[str],
    python: str,
    environment: Mapping[str, str],
    timeout: float,
    enter: tuple[str, ...] = (),
    passed: Sequence[str] = (),
    *,
    own_environment: bool = False,
) -> BuildRecipe:
    """Return the recipe of ``build`` commands. UsageError for one that can't be read."""
    replaced = "{python}" if own_environment else python
    commands = tuple(_words(command, replaced) for command in build)
    return BuildRecipe(
        resolved.tree,
        resolved.commit,
        commands,
        python,
        environment,
        timeout,
        enter,
        tuple(sorted(passed)),
        own_environment,
    )


def _words(command: str, python: str) -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _unreadable(command, str(error).lower()) from error
    if not words:
        raise _unreadable(command, "it is empty")
    shells = (match["shell"] for match in _QUOTED_OR_SHELL.finditer(command))
    if shell := next(filter(None, shells), None):
        raise _unreadable(command, f"{shell} needs a shell")
    return tuple(word.replace("{python}", python) for word in words)


def _unreadable(command: str, why: str) -> UsageError:
    return UsageError(
        "bad-build-command",
        f"build command {command!r} can't be run: {why}",
        "Commands run without a shell, one after the other: give each its own text in `build`, "
        "quote what is meant as it stands, or write \"bash -c '…'\".",
    )


_TAIL_BYTES = 4000
_TAIL_LINES = 30


def run_build(recipe: BuildRecipe, folder: Path, log: Path) -> None:
    """Run the commands in ``folder``, their output in ``log``. OutsideError where one fails."""
    deadline = time.monotonic() + recipe.timeout
    with log.open("wb") as output:
        for command in recipe.commands:
            output.write(f"$ {' '.join(command)}\n".encode(errors="surrogateescape"))
            output.flush()
            trouble = _run(command, recipe, folder, output, deadline)
            if trouble:
                raise _failed(command, trouble, log)


def _run(
    command: tuple[str, ...], recipe: BuildRecipe, folder: Path, output: BinaryIO, deadline: float
) -> str:
    """Return what went wrong, or nothing."""
    if recipe.enter and not _is_there(command[0], recipe, folder):
        return f"could not be started: {os.strerror(errno.ENOENT)}"
    try:
        process = subprocess.Popen(
            [*recipe.enter, *command],
            cwd=folder,
            env=dict(recipe.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return f"could not be started: {error.strerror}"
    try:
        status = process.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"was not done after {format_duration(recipe.timeout)} and was ended"
    finally:  # also of Ctrl-C, and of what a command that succeeded left running
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if status < 0:
        return f"was killed by signal {-status}"
    return f"ended with exit status {status}" if status else ""


def _is_there(program: str, recipe: BuildRecipe, folder: Path) -> bool:
    if "/" in program:
        return (folder / program).exists()
    return shutil.which(program, path=recipe.environment.get("PATH")) is not None


def _failed(command: tuple[str, ...], trouble: str, log: Path) -> PerfciError:
    tail = _tail(log)
    message = f"build command `{' '.join(command)}` {trouble}"
    full = disk_error("building", tail)
    if full and full.slug == "disk-full":
        return OutsideError(full.slug, f"{message}\n{tail}", full.advice)
    return UnbuiltCommit("build-failed", f"{message}\n{tail}".rstrip(), f"The whole log: {log}")


def _tail(log: Path) -> str:
    with log.open("rb") as text:
        text.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = text.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-_TAIL_LINES:])
