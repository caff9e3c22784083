"""Commands on this machine, some at once: each on cores of its own, and on a GPU of its own.

The kernel kills them when their submitter dies, because they would disturb the next
measurement. The reports of those that had ended are kept in the job's folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from perfci.api import tied
from perfci.engine.job import JobFolder
from perfci.engine.plan import CommandState, MachineSlot, Plan
from perfci.units import signal_name

_GRACE_S = 60.0
"""For a report of what was measured until then."""
_TIED = (sys.executable, "-I", tied.__file__)


@dataclass(slots=True)
class LocalEngine:
    """Runs at most one command in each of ``slots``; the next one begins at a ``poll``."""

    folder: JobFolder
    slots: Sequence[MachineSlot]
    settle_s: float = 0.0
    _queue: deque[int] = field(default_factory=deque)
    _children: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def submit(self, plan: Plan, numbers: Sequence[int]) -> None:
        """Start as many as there are slots for; the others wait."""
        self._queue.extend(numbers)
        self._fill(plan)

    def poll(self, plan: Plan) -> Mapping[int, CommandState]:
        """Look at the processes, and start the next ones in slots that are free."""
        self._fill(plan)
        kept = self.folder.submitted()
        return {number: self._state(number, kept) for number in plan.numbers}

    def cancel(self, plan: Plan) -> None:
        """End every command as Ctrl-C would; one that takes too long with all it started."""
        self._queue.clear()
        processes = {number: self._process(number) for number in plan.numbers}
        alive = [process for process in processes.values() if process]
        for process in alive:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
        _wait(alive, _GRACE_S)
        for process in alive:  # itself, or what it has left in its group
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _fill(self, plan: Plan) -> None:
        while self._queue:
            kept = self.folder.submitted()
            busy = {
                each["slot"] for number, each in kept.items() if self._process(int(number), kept)
            }
            free = [at for at in range(len(self.slots)) if at not in busy]
            if not free or len(busy) >= len(self.slots):  # another command may have had more
                return
            number = self._queue.popleft()
            self.folder.keep_submitted(kept | {str(number): self._start(plan, number, free[0])})

    def _start(self, plan: Plan, number: int, at: int) -> dict[str, float]:
        slot = self.slots[at]
        own = {"CUDA_VISIBLE_DEVICES": slot.device} if slot.device else {}
        before = os.sched_getaffinity(0)
        with self.folder.log(number).open("wb") as log:
            try:
                os.sched_setaffinity(0, slot.cores)  # inherited from the first instruction on
                child = subprocess.Popen(
                    [*_TIED, str(os.getpid()), *plan.commands[number - 1]],
                    cwd=plan.folder,
                    env={**os.environ, **own},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # a terminal's Ctrl-C is for the waiting process
                )
            finally:
                os.sched_setaffinity(0, before)
        self._children[number] = child
        return {"pid": child.pid, "began": psutil.Process(child.pid).create_time(), "slot": at}

    def _process(
        self, number: int, kept: Mapping[str, Mapping[str, float]] | None = None
    ) -> psutil.Process | None:
        """Return the process of command ``number`` while it lives."""
        if (child := self._children.get(number)) and child.poll() is not None:
            return None
        entry = (self.folder.submitted() if kept is None else kept).get(str(number))
        if entry is None:
            return None
        try:
            process = psutil.Process(int(entry["pid"]))
            return process if process.create_time() == entry["began"] and _lives(process) else None
        except psutil.NoSuchProcess:
            return None

    def _state(self, number: int, kept: Mapping[str, Mapping[str, float]]) -> CommandState:
        if number in self._queue:
            return CommandState("waiting", "a free slot")
        if str(number) not in kept:
            return CommandState("absent")
        if self._process(number, kept):
            return CommandState("running")
        child = self._children.get(number)
        # it may be a zombie, for which `wait` returns immediately
        return CommandState("ended", "" if child is None else _ended_text(child.wait()))


def _ended_text(code: int) -> str:
    return f"killed by {signal_name(-code)}" if code < 0 else f"exit code {code}"


def _wait(processes: Sequence[psutil.Process], within_s: float) -> None:
    """Wait until they have ended, but no longer than ``within_s``."""
    end = time.monotonic() + within_s
    while time.monotonic() < end and any(map(_lives, processes)):
        time.sleep(0.05)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
