"""The processes below a worker: their processor time and memory.

The processes of torch's compiler are left out: there is one per core, and all idle in warm calls.
This module needs Linux' /proc.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_COMPILE_WORKER = b"/torch/_inductor/compile_worker/"
"""Part of the command line of a process of torch's compiler."""
_KIB = 1024
_PAUSE_S = 0.001
"""Time between two samples of memory."""
GRACE_S = 0.3
"""Time for processes that end a little after their parent, as Python's resource tracker does."""


class _Process(NamedTuple):
    """A process as /proc has it. ``reaped_s`` is the processor time of its ended children.

    ``ended`` means that only its parent's wait for it is missing. ``image`` is the address of its
    stack: a fork has its parent's address, and exec changes it. ``started_s`` counts from the
    system's start.
    """

    pid: int
    parent: int
    session: int
    ended: bool
    reaped_s: float
    image: int
    started_s: float


def _descendants() -> Iterator[_Process]:
    """Yield the living processes below this process, parents first."""
    if not _has_children():
        return
    children: dict[int, list[_Process]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (process := _stat(int(entry.name))):
            children.setdefault(process.parent, []).append(process)
    waiting = children.get(os.getpid(), [])
    while waiting:
        process = waiting.pop()
        if not _is_compiler(process.pid):
            yield process
            waiting += children.get(process.pid, ())


class Spent(NamedTuple):
    """Processor time of the descendants in s, their number, and page faults of ended children.

    ``living`` includes processes that have ended but are not collected yet. ``running`` does not.
    """

    cpu_s: float
    living: int
    faults: int
    running: int = 0

    @staticmethod
    def now() -> Spent:
        """Return the present reading."""
        import resource  # the parent imports this module on Windows, too

        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        living = list(_descendants())
        return Spent(
            ended.ru_utime + ended.ru_stime + sum(_cpu_s(process) for process in living),
            len(living),
            ended.ru_minflt,
            sum(not process.ended for process in living),
        )

    def any_until(self, later: Spent) -> bool:
        """Return whether any descendant lived between this reading and ``later``.

        The page faults tell whether a process both started and ended in between.
        """
        return bool(self.living or later.living or later.faults > self.faults)


def uptime_s() -> float:
    """Return the time since the system's start, by the clock of processes' start times."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def left_by_children(within_s: float = GRACE_S, since_s: float = 0.0) -> int:
    """Return how many processes of this Unix session still run, but no longer below this one.

    Not counted are processes that end by themselves ``within_s``, and processes that began before
    ``since_s`` (by ``uptime_s``). Also not counted are processes that detached themselves into
    another session, which perfci ends with the worker. Returns 0 if this process isn't the leader
    of its session.
    """
    if os.getsid(0) != os.getpid():
        return 0
    end = time.monotonic() + within_s
    while (left := _orphans(since_s)) and time.monotonic() < end:
        time.sleep(0.01)
    return left


def _orphans(since_s: float) -> int:
    """Return how many running processes of this session are not below this process."""
    own = os.getpid()
    below = {own, *(descendant.pid for descendant in _descendants())}
    processes = (_stat(int(entry.name)) for entry in _PROC.iterdir() if entry.name.isdigit())
    in_session = [
        process
        for process in processes
        if process and process.session == own and not process.ended and process.started_s >= since_s
    ]
    return sum(process.pid not in below and not _is_compiler(process.pid) for process in in_session)


def held_by_descendants() -> int:
    """Return the bytes that the processes below this one hold in addition to this process's own.

    These are the pages of their anonymous and shared memory, each counted once: of a page that
    several processes share, the kernel counts a part for each. Of a fork only private pages count,
    because pages that it shares with this process are counted here already. Mapped files don't
    count, because how many processes share a library's pages depends on what else runs.
    """
    own = _stat(os.getpid())
    forked = apart = shared = 0
    for descendant in _descendants():
        held = _sizes(f"{descendant.pid}/smaps_rollup")
        if own and descendant.image == own.image:
            forked += held.get("Private_Dirty", 0)
        else:
            apart += held.get("Pss_Anon", 0)
            shared += held.get("Pss_Shmem", 0)
    if shared:
        # less this process's pages, which the children's Pss counts again
        own_part = _sizes("self/smaps_rollup").get("Pss_Shmem", 0)
        shared = max(0, shared - max(0, (resident("RssShmem") or 0) - own_part))
    return forked + apart + shared


@contextmanager
def tree_sampled(samples: list[int]) -> Iterator[None]:
    """Sample the memory of this process and the processes below it while the block runs.

    Nothing timed may run inside, because a thread of this process samples. A sampler in another
    process would count memory twice that a ``vfork``'s child shares with this process. A thread
    doesn't: the GIL keeps it waiting until such a child runs another program.
    """
    import threading

    over = threading.Event()

    def sample() -> None:
        samples.append((resident("VmRSS") or 0) + held_by_descendants())

    def sample_on() -> None:
        while not over.wait(_PAUSE_S):
            sample()

    thread = threading.Thread(target=sample_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    sample()


def resident(field: str) -> int | None:
    """Return a field of this process's ``status`` in bytes, or None if the kernel lacks it."""
    return _sizes("self/status").get(field)


def _has_children() -> bool:
    """Return whether this process has children. One system call, as reading /proc takes ms."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _stat(pid: int) -> _Process | None:
    """Return a process as its ``stat`` describes it, or None if it is gone."""
    fields = _read(f"{pid}/stat").rpartition(b")")[2].split()
    if not fields:
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    # proc(5) numbers the state 3, so these are three less than its numbers
    reaped_s = (int(fields[13]) + int(fields[14])) / ticks
    parent, session, started, image = (int(fields[place]) for place in (1, 3, 19, 25))
    ended = fields[0] in {b"Z", b"X"}
    return _Process(pid, parent, session, ended, reaped_s, image, started / ticks)


def _is_compiler(pid: int) -> bool:
    return _COMPILE_WORKER in _read(f"{pid}/cmdline")


def _cpu_s(process: _Process) -> float:
    """Return the processor time of a process and of its ended children.

    Its own time is read from the clock of ``clock_getcpuclockid(3)``, because ``stat`` counts in
    ticks of 10 ms.
    """
    try:
        return time.clock_gettime((~process.pid << 3) | 2) + process.reaped_s
    except OSError:  # collected meanwhile: its time is part of its parent's now
        return 0.0


def _sizes(file: str) -> dict[str, int]:
    """Return the sizes in one of /proc's files, in bytes. Empty if the process is gone."""
    lines = (line.split() for line in _read(file).splitlines())
    return {
        words[0].decode().rstrip(":"): int(words[1]) * _KIB
        for words in lines
        if len(words) == 3 and words[2] == b"kB"
    }


def _read(file: str) -> bytes:
    try:
        return (_PROC / file).read_bytes()
    except OSError:
        return b""
