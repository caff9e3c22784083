"""``perfci.command``: one run of a program as work."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from resource import struct_rusage
from statistics import fmean, median
from typing import IO, get_args

from perfci.api import require, required_share
from perfci.api.children import how_it_ended, last_words
from perfci.collector import Work
from perfci.errors import Unusable
from perfci.metrics import NOTHING, Observation, Reading
from perfci.metrics.observed.processes import left_by_children, resident
from perfci.model.case import Gate
from perfci.model.worker import ResultsFile

_MOST_SHOWN_BYTES = 2000
_KIB = 1024
MOST_BYTES = 16 << 20
"""Largest file of results that is kept."""


def command(
    line: Sequence[str | os.PathLike[str]] | str,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,  # noqa: A002 (subprocess' own name of it)
    exit_codes: Sequence[int] = (0,),
    shell: bool = False,
    results: str | os.PathLike[str] | None = None,
    format: str = "",  # noqa: A002 (a user's word)
    threshold: float | str = 0.05,
    gate: Gate = "fail",
) -> Work:
    """Return the work of one run of a command, from its start until it has ended.

    ``line`` is the program and its arguments, or with ``shell`` a line for ``/bin/sh``. ``cwd`` is
    relative to the side's tree, ``env`` is added to the worker's environment, ``input`` is what
    standard input holds. Any other exit code than ``exit_codes`` fails the case.

    ``results`` is a file that each run writes, relative to ``cwd`` or in the temporary folder, in
    the ``format`` of an importer (``nvbench``, ``google-benchmark``, ``vllm``, …; by default its
    content shows it). Each result in it is a metric. ``threshold`` and ``gate`` apply to
    these metrics.
    """
    require(
        shell == isinstance(line, str),
        "command",
        f"the command is {line!r}",
        'Write a list, perfci.command(["tool", "--option"]), or a line for a shell, '
        'perfci.command("tool | other", shell=True).',
    )
    require(
        results is None or _is_own(Path(results)),
        "command",
        f"results is {str(results)!r}",
        "Write a path in the command's folder or in tempfile.gettempdir(): each side has its own.",
    )
    require(gate in get_args(Gate), "command", f"gate is {gate!r}", "Write fail, warn or info.")
    share = required_share("command", threshold)
    run = _Command(
        ["/bin/sh", "-c", line] if isinstance(line, str) else [os.fspath(word) for word in line],
        cwd=cwd,
        environment={**os.environ, **(env or {})},
        exit_codes=frozenset(exit_codes),
        stdin=None if input is None else _file_of(input),
        results=None
        if results is None
        else ResultsKeeper(Path(cwd or "") / results, format, share, gate),
    )
    return Work(run, observer=run)


def _file_of(content: str | bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the work is there)
    file.write(content.encode() if isinstance(content, str) else content)
    return file


def _is_own(path: Path) -> bool:
    inside = not path.is_absolute() or path.is_relative_to(tempfile.gettempdir())
    return inside and ".." not in path.parts


@dataclass(slots=True, eq=False)
class ResultsKeeper:
    """Keeps the content that each run wrote to the file at ``path``."""

    path: Path
    format: str
    threshold: float
    gate: Gate
    files: list[ResultsFile] = field(default_factory=list)

    def remove(self) -> None:
        """Remove an earlier run's file. Otherwise a run that writes nothing would look measured."""
        self.path.unlink(missing_ok=True)

    def keep(self, command: str) -> None:
        """Keep the file that the run wrote. Unusable if there is no file, or it is too large."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            why = f"`{command}` wrote no results to {self.path}: {error.strerror}"
            raise Unusable("no_results", why) from error
        if len(content) > MOST_BYTES:
            why = f"{self.path} of `{command}` has more than {MOST_BYTES >> 20} MiB"
            raise Unusable("no_results", f"{why}: leave raw data out")
        text = content.decode("latin-1")  # one character per byte, whatever the encoding
        self.files.append(ResultsFile(str(self.path), text, self.format, self.threshold, self.gate))


@dataclass(slots=True, eq=False)
class _Command:
    """Runs the command. As its own observer, reports the runs' processor time and peak memory."""

    words: list[str]
    cwd: str | os.PathLike[str] | None
    environment: Mapping[str, str]
    exit_codes: frozenset[int]
    stdin: IO[bytes] | None
    results: ResultsKeeper | None = None
    _stderr: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    _usages: list[struct_rusage] = field(default_factory=list)

    def __call__(self) -> None:
        if self.stdin:
            self.stdin.seek(0)
        if self.results:
            self.results.remove()
        process = self._started()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in self.exit_codes:
            raise self._failure(process.returncode)
        if self._stderr.tell():  # the length: the child's file shares this one's position
            self._stderr.seek(0)
            self._stderr.truncate()
        if self.results:
            self.results.keep(self._name)
        self._usages.append(usage)

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
        """Forget the runs so far. Unusable if they left processes running, which would pile up."""
        if left := left_by_children():
            raise Unusable(
                "left_processes",
                f"`{self._name}` ended and left processes running, {left} by now: have it wait for "
                "them",
            )
        self._usages.clear()
        if self.results:
            self.results.files.clear()

    def reading(self) -> Reading:
        """Return the processor time and the peak memory of the runs.

        A process inherits its parent's high-water mark of memory (``setmax_mm_hiwater_rss`` in
        Linux' ``fs/exec.c``). So a peak that isn't above this process's own tells nothing. The
        kernel counts pages in batches per core: up to 5 % above is the same peak.
        """
        usages = self._usages
        if not usages:
            return NOTHING
        values = {
            "command_cpu_time": median(each.ru_utime + each.ru_stime for each in usages),
            "command_user_time": fmean(each.ru_utime for each in usages),
            "command_system_time": fmean(each.ru_stime for each in usages),
        }
        missing = {}
        peak = float(median(each.ru_maxrss for each in usages) * _KIB)
        own = resident("VmHWM")
        if own is None or peak <= own * 1.05:
            least = f"{own / (1 << 20):.0f} MiB" if own else "unknown"
            why = f"no more than the worker's own peak ({least}), which Linux counts as the child's"
            missing["command_peak_memory"] = why
        else:
            values["command_peak_memory"] = peak
        return Observation(
            values, missing, results=tuple(self.results.files) if self.results else ()
        )

    def _failure(self, code: int) -> Unusable:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _MOST_SHOWN_BYTES))
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        why = f"`{self._name}` {how_it_ended(code)}. Its standard error:\n{last_words(lines)}"
        return Unusable("command_failed", why)

    @property
    def _name(self) -> str:
        return " ".join(self.words)[:200]
