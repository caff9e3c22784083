"""Running a build's commands: in their own process group, to a log, within their time."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from perfci.checkout.disk import disk_error
from perfci.checkout.recipe import Recipe
from perfci.errors import MeasureError, OutsideError, PerfciError
from perfci.units import format_duration

_TAIL_BYTES = 4000
_TAIL_LINES = 30


def run_build(recipe: Recipe, folder: Path, log: Path) -> None:
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
    command: tuple[str, ...], recipe: Recipe, folder: Path, output: BinaryIO, deadline: float
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


def _is_there(program: str, recipe: Recipe, folder: Path) -> bool:
    if "/" in program:
        return (folder / program).exists()
    return shutil.which(program, path=recipe.environment.get("PATH")) is not None


def _failed(command: tuple[str, ...], trouble: str, log: Path) -> PerfciError:
    tail = _tail(log)
    message = f"build command `{' '.join(command)}` {trouble}"
    full = disk_error("building", tail)
    if full and full.slug == "disk-full":
        return OutsideError(full.slug, f"{message}\n{tail}", full.advice)
    return MeasureError("build-failed", f"{message}\n{tail}".rstrip(), f"The whole log: {log}")


def _tail(log: Path) -> str:
    with log.open("rb") as text:
        text.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = text.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-_TAIL_LINES:])
