"""Starting a worker as a fresh process of its side's Python, and ending it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import perfci.worker
from perfci.errors import OutsideError
from perfci.measure.leftovers import GRACE_S, WORKER_VARIABLE, end_all
from perfci.measure.machine.quiet import remove_worker

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.05
_BOOTSTRAP = str(Path(perfci.worker.__file__).with_name("bootstrap.py"))


@dataclass(frozen=True, slots=True)
class Launch:
    """The way that workers of one side are started. ``affinity`` is empty where nothing is pinned.

    ``enter`` is a command that goes before Python: it takes the worker out of others' reach.
    ``launcher`` is the user's own, which goes after that.
    """

    python: str
    environment: Mapping[str, str]
    affinity: tuple[int, ...] = ()
    memory_limit: int = 0
    import_times: bool = False
    enter: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()


class TreeDeleted(Exception):
    """A side's tree is gone: a benchmark deleted it. No worker can start there any more."""


@dataclass(frozen=True, slots=True)
class ChildDescriptors:
    """A new worker's ends: orders in, results out, what it prints, and turns (-1: it has none)."""

    orders: int
    results: int
    output: int
    turns: int = -1


class WorkerProcess(Protocol):
    """A worker's process, however it was started."""

    @property
    def pid(self) -> int:
        """The process id, which is its group's too."""

    def wait(self, within_s: float) -> int | None:
        """Return the exit code (negative for a signal), or None while it lives on."""

    def kill(self) -> None:
        """Kill the whole group."""

    def end_leftovers(self) -> int:
        """Kill what the worker left behind; return how many processes that were."""


class SpawnedWorker:
    """A fresh process. ``kept`` are descriptors that it inherits besides its pipes."""

    def __init__(
        self, launch: Launch, root: str, ends: ChildDescriptors, kept: tuple[int, ...] = ()
    ) -> None:
        self.token = secrets.token_hex(8)
        options = ["-P", *(["-X", "importtime"] if launch.import_times else [])]
        before = os.sched_getaffinity(0)
        try:
            if launch.affinity:  # inherited by the child from its very first instruction
                os.sched_setaffinity(0, launch.affinity)
            first = (*launch.launcher, launch.python)[0]
            if launch.enter and shutil.which(first) is None:  # it would say so in the log
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            spawned = str(time.monotonic_ns())
            self._process = subprocess.Popen(
                [
                    *launch.enter,
                    *launch.launcher,
                    launch.python,
                    *options,
                    _BOOTSTRAP,
                    *(str(ends.orders), str(ends.results), str(ends.turns), spawned),
                ],
                stdin=subprocess.DEVNULL,
                stdout=ends.output,
                stderr=ends.output,
                pass_fds=tuple(
                    descriptor
                    for descriptor in (ends.orders, ends.results, ends.turns, *kept)
                    if descriptor >= 0
                ),
                cwd=root,
                env={**launch.environment, WORKER_VARIABLE: self.token},
                start_new_session=True,
            )
        except OSError as error:
            if not os.path.isdir(root):  # noqa: PTH112 (a Path of a deleted folder is no use)
                raise TreeDeleted(root) from error
            raise OutsideError(
                "no-python",
                f"{launch.python} could not be started: {error.strerror}",
                "Name an interpreter that has torch with --base-python / --head-python.",
            ) from error
        finally:
            os.sched_setaffinity(0, before)
        _make_first_victim(self._process.pid, launch.memory_limit)

    @property
    def pid(self) -> int:
        """The process id, which is its group's too."""
        return self._process.pid

    def wait(self, within_s: float) -> int | None:
        """Return the exit code (negative for a signal), or None while it lives on.

        What it left in its group is killed first: until it is reaped, its id is its own.
        """
        if self._process.returncode is None:
            if not _has_ended(self._process.pid, within_s):
                return None
            self.kill()
        return self._process.returncode

    def kill(self) -> None:
        """Kill the whole group, and wait for the process; a reaped one's id may be another's."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def end_leftovers(self) -> int:
        """Kill what left the group; return how many processes that were."""
        left = end_all(WORKER_VARIABLE, self.token, grace_s=GRACE_S)
        remove_worker(self.token)
        return left


def move(pid: int, cores: Collection[int]) -> None:
    """Pin all threads of a process to ``cores``; with none it stays where it is."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # gone: noticed elsewhere
        for task in Path(f"/proc/{pid}/task").iterdir() if cores else ():
            os.sched_setaffinity(int(task.name), cores)


def _has_ended(pid: int, within_s: float) -> bool:
    """Wait for a child without reaping it."""
    deadline = time.monotonic() + within_s
    pause_s = _FIRST_PAUSE_S
    try:
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause_s, left))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    except ChildProcessError:  # whoever started perfci ignored SIGCHLD: the kernel reaps by itself
        return True
    return True


def _make_first_victim(pid: int, memory_limit: int) -> None:
    """Let the kernel, when out of memory, take the worker and not the parent or the runner."""
    with contextlib.suppress(OSError):  # gone already: noticed at the next expect
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000", encoding="ascii")
    if memory_limit:
        with contextlib.suppress(ProcessLookupError):
            import resource

            resource.prlimit(pid, resource.RLIMIT_DATA, (memory_limit, memory_limit))
