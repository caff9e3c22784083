"""``perfci.command``: a command line as work. Standard library only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from types import NoneType
from typing import IO, TypeGuard

from perfci.api.definition import user_frame
from perfci.collecting import Work
from perfci.errors import BenchmarkError, Unusable
from perfci.metrics import Reading
from perfci.metrics.observed.processes import left_by_children, resident

_LAST_LINES = 5
_LONGEST = 2000
_KIB = 1024


def command(
    line: Sequence[str | os.PathLike[str]] | str,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,  # noqa: A002 (subprocess' own name of it)
    exit_codes: Sequence[int] = (0,),
    shell: bool = False,
) -> Work:
    """Return the work of one run of a command, from its start until it has ended.

    ``line`` is the program and its arguments, or with ``shell`` a line for ``/bin/sh``. ``cwd`` is
    relative to the side's tree, ``env`` is added to the worker's environment, ``input`` is what
    standard input holds. Any other exit code than ``exit_codes`` fails the case. Raises
    BenchmarkError, with file and line, where it is written wrongly.
    """
    if wrong := _wrong(line, env, input, exit_codes, shell=shell):
        raise BenchmarkError(
            "bad-command",
            f"{user_frame()}: perfci.command: {wrong}",
            'Write a list, perfci.command(["tool", "--option"]), or a line for a shell, '
            'perfci.command("tool | other", shell=True).',
        )
    words = [line] if isinstance(line, str) else [os.fspath(word) for word in line]
    run = _Command(
        ["/bin/sh", "-c", *words] if shell else words,
        cwd=cwd,
        environment={**os.environ, **(env or {})},
        exit_codes=frozenset(exit_codes),
        stdin=_file_of(input),
    )
    sys.audit("perfci.command", run.words[0])
    return Work(run, observer=run)


def _wrong(line: object, env: object, content: object, exit_codes: object, *, shell: bool) -> str:
    """Return what is wrong with the arguments, or nothing."""
    if shell:
        is_command = isinstance(line, str) and bool(line)
    else:
        is_command = all_of(line, str, os.PathLike) and "" not in list(line)[:1]
    if not is_command:
        return f"the command is {line!r}"
    if not all_of(exit_codes, int):
        return f"exit_codes is {exit_codes!r}; give a list of numbers"
    if env and not (isinstance(env, Mapping) and all_of([*env, *env.values()], str)):
        return f"env is {env!r}; give texts by name"
    if not isinstance(content, (str, bytes, NoneType)):
        return f"input is {type(content).__name__}; give text or bytes"
    return ""


def all_of(value: object, *types: type) -> TypeGuard[Collection[object]]:
    """Return whether ``value`` is a collection of members of these types, not empty and no text."""
    return (
        isinstance(value, Collection)
        and not isinstance(value, (str, bytes))
        and bool(value)
        and all(isinstance(each, types) for each in value)
    )


def _file_of(content: str | bytes | None) -> IO[bytes] | None:
    if content is None:
        return None
    file = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the work is there)
    file.write(content.encode() if isinstance(content, str) else content)
    file.flush()
    return file


@dataclass(slots=True, eq=False)
class _Command:
    """Runs the command; keeps what the kernel says each run took."""

    words: list[str]
    cwd: str | os.PathLike[str] | None
    environment: Mapping[str, str]
    exit_codes: frozenset[int]
    stdin: IO[bytes] | None
    _stderr: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    _user: list[float] = field(default_factory=list)
    _system: list[float] = field(default_factory=list)
    _peak: list[float] = field(default_factory=list)

    def __call__(self) -> None:
        if self.stdin:
            self.stdin.seek(0)
        process = self._started()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in self.exit_codes:
            raise self._failure(process.returncode)
        if self._stderr.tell():  # the descriptor's place is the child's, too
            self._stderr.seek(0)
            self._stderr.truncate()
        self._user.append(usage.ru_utime)
        self._system.append(usage.ru_stime)
        self._peak.append(float(usage.ru_maxrss * _KIB))

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.words,
                cwd=self.cwd,
                env=self.environment,
                stdin=self.stdin or subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
            )
        except (OSError, ValueError) as error:
            raise Unusable("command_failed", f"`{self._name}` did not start: {error}") from error

    def begin(self) -> None:
        """Forget the runs so far. Unusable where they left processes running: they'd pile up."""
        if left := left_by_children():
            raise Unusable(
                "left_processes",
                f"`{self._name}` ended and left processes running, {left} by now: have it wait for "
                "them",
            )
        for values in (self._user, self._system, self._peak):
            values.clear()

    def reading(self) -> Reading:
        """Return what the runs took.

        A process inherits the high-water mark of who started it (``setmax_mm_hiwater_rss`` in
        Linux' ``fs/exec.c``): a peak that is no higher than this process's own says nothing.
        """
        if not self._user:
            return Reading()
        both = [user + system for user, system in zip(self._user, self._system, strict=True)]
        values = {
            "command_cpu_time": median(both),
            "command_user_time": fmean(self._user),
            "command_system_time": fmean(self._system),
        }
        peak, own = median(self._peak), resident("VmHWM")
        if own is None or peak <= own:
            least = f"{own / (1 << 20):.0f} MiB" if own else "unknown"
            why = f"no more than the worker's own peak ({least}), which Linux counts as the child's"
            return Reading(values, {"command_peak_memory": why})
        return Reading(values | {"command_peak_memory": peak})

    def _failure(self, code: int) -> Unusable:
        if code < 0:
            ended = f"was ended by signal {-code} ({signal.strsignal(-code)})"
        else:
            ended = f"ended with exit code {code}"
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _LONGEST))
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        last = "\n".join(lines[-_LAST_LINES:]) or "it wrote nothing to standard error"
        return Unusable("command_failed", f"`{self._name}` {ended}:\n{last}")

    @property
    def _name(self) -> str:
        return " ".join(self.words)[:200]
