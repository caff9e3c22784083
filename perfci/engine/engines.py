"""The engines: one runs some commands at once on this machine, the other an array by Slurm."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from perfci.api import parent_death
from perfci.engine.job import CommandState, JobFolder, MachineSlot, Plan
from perfci.errors import OutsideError, UsageError
from perfci.units import signal_name

_GRACE_S = 60.0
"""Time that interrupted commands get for a report of what they have measured so far."""
_TIED_TO_PARENT = (sys.executable, "-I", parent_death.__file__)
"""Goes before a process id and a command: the kernel kills the command if that process dies."""
_PROGRAMS = ("sbatch", "squeue", "scancel")
_ANSWER_S = 60.0
"""Longest time of one of Slurm's programs."""
_CANCEL_S = 90.0
"""Longest wait for cancelled jobs. Slurm gives each KillWait (30 s by default) for its results."""
_SIGNALLED = 128
"""If a signal ended a command, a shell's exit code is above this number."""
_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED", "SPECIAL_EXIT"}
"""Slurm's states of a task that doesn't run at the moment, but will."""
_OWN = ("array", "chdir", "error", "job-name", "output", "parsable", "wrap", "wait", "requeue")
"""Options of ``sbatch`` that the user can't give, because perfci decides them."""
_WORDS = {
    "TIMEOUT": "it ran out of time",
    "NODE_FAIL": "its node failed",
    "OUT_OF_MEMORY": "it ran out of memory",
    "CANCELLED": "it was cancelled",
    "PREEMPTED": "another job took its place",
}


@dataclass(slots=True)
class LocalEngine:
    """Runs at most one command in each of ``slots``. ``poll`` starts the commands that wait.

    Each slot has cores of its own, and a GPU if there are several. The kernel kills the commands
    when the process that submitted them dies, because they would disturb the next measurement. The
    job's folder keeps the reports of commands that had ended.
    """

    folder: JobFolder
    slots: Sequence[MachineSlot]
    settle_s: float = 0.0
    _queue: deque[int] = field(default_factory=deque)
    _children: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def submit(self, plan: Plan, numbers: Sequence[int]) -> None:
        """Start as many commands as there are slots. The others wait."""
        self._queue.extend(numbers)
        self._fill(plan)

    def poll(self, plan: Plan) -> Mapping[int, CommandState]:
        """Look at the processes, and start the next ones in slots that are free."""
        self._fill(plan)
        kept = self.folder.submitted()
        return {number: self._state(number, kept) for number in plan.numbers}

    def cancel(self, plan: Plan) -> None:
        """End every command as Ctrl-C would. If one takes too long, kill it with all it started."""
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
            # more slots than there are now may be busy, if the job began with more of them
            if not free or len(busy) >= len(self.slots):
                return
            number = self._queue.popleft()
            self.folder.keep_submitted(kept | {str(number): self._start(plan, number, free[0])})

    def _start(self, plan: Plan, number: int, at: int) -> dict[str, float]:
        slot = self.slots[at]
        devices = {"CUDA_VISIBLE_DEVICES": slot.device} if slot.device else {}
        before = os.sched_getaffinity(0)
        with self.folder.log(number).open("wb") as log:
            try:
                os.sched_setaffinity(0, slot.cores)  # the child has them from its first instruction
                child = subprocess.Popen(
                    [*_TIED_TO_PARENT, str(os.getpid()), *plan.commands[number - 1]],
                    cwd=plan.folder,
                    env={**os.environ, **devices},
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
        if child is None:
            return CommandState("ended")
        code = child.wait()  # it may be a zombie, for which this returns immediately
        how = f"killed by {signal_name(-code)}" if code < 0 else f"exit code {code}"
        return CommandState("ended", how)


def _wait(processes: Sequence[psutil.Process], within_s: float) -> None:
    """Wait until all processes have ended, but no longer than ``within_s``."""
    end = time.monotonic() + within_s
    while time.monotonic() < end and any(map(_lives, processes)):
        time.sleep(0.05)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass(frozen=True, slots=True)
class SlurmEngine:
    """Submits an array of tasks with ``options`` of ``sbatch``. No other job has its ``name``.

    submitit was considered: it runs pickled functions, and what it adds to Slurm's programs
    (parsing ``sacct``, a name for each option) is little. Accounting is asked only why a task
    ended, because a cluster may have no accounting.
    """

    folder: JobFolder
    name: str
    options: tuple[str, ...] = ()
    settle_s: float = 15.0

    def submit(self, plan: Plan, numbers: Sequence[int]) -> None:
        """Submit one array with a task for each of ``numbers``."""
        script = self.folder.path / "array.sh"
        script.write_text(array_script(plan, self.folder), encoding="utf-8")
        kept = self.folder.submitted()
        # Slurm may have taken an array whose number isn't known: perfci was killed before it had it
        self.folder.keep_submitted(kept | dict.fromkeys(map(str, numbers), ""))
        minutes = math.ceil(plan.time_limit_s / 60)
        job = self._run(
            "sbatch", "--parsable", f"--job-name={self.name}", "--no-requeue",
            f"--array={','.join(map(str, numbers))}", f"--chdir={plan.folder}",
            f"--output={self.folder.path}/slurm-%a.log", f"--time={minutes}",
            *self.options, str(script),
        )  # fmt: skip
        number = job.partition(";")[0]
        self.folder.keep_submitted(kept | {str(each): number for each in numbers})

    def poll(self, plan: Plan) -> Mapping[int, CommandState]:
        """Ask Slurm for the tasks that wait or run. All other submitted tasks have ended."""
        kept = self.folder.submitted()
        queued = self._queued()
        if queued is None:
            why = "Slurm's controller to answer"
            return {
                each: CommandState("waiting" if kept[str(each)] else "unknown", why)
                if str(each) in kept
                else CommandState("absent")
                for each in plan.numbers
            }
        return {
            number: queued.get(number) or self._ended(number, kept.get(str(number), ""))
            for number in plan.numbers
        }

    def cancel(self, plan: Plan) -> None:  # noqa: ARG002 (all jobs of the name are the plan's)
        """Cancel by name, so that an array of unknown number is included. Wait until none runs.

        OutsideError if Slurm doesn't cancel: all tasks may run on.
        """
        done = _run_program("scancel", f"--name={self.name}")
        if done.returncode != 0:
            raise OutsideError(
                "slurm-not-cancelled",
                f"the array may still be waiting or running: scancel failed: {_error_of(done)}",
                f"Cancel it once Slurm answers: scancel --name={self.name}. Or let it run, and "
                "give the same command again: it takes up what has been measured.",
            )
        end = time.monotonic() + _CANCEL_S
        while time.monotonic() < end and self._queued() != {}:
            time.sleep(1.0)

    def _queued(self) -> dict[int, CommandState] | None:
        """Return the tasks that haven't ended, or None if Slurm doesn't answer."""
        done = _run_program(
            "squeue", "--noheader", "--array", f"--name={self.name}", "--format=%K|%T|%r"
        )
        if done.returncode != 0:
            return None
        return queued_tasks(done.stdout)

    def _ended(self, number: int, job: str) -> CommandState:
        if not job:
            return CommandState("absent")
        path = self.folder.exit_path(number)
        code = path.read_text(encoding="ascii").strip() if path.exists() else ""
        known = [f"exit code {code}"] if code else []
        if not code or int(code) > _SIGNALLED:  # perhaps Slurm's: the script outlives its command
            known.insert(0, _reason(f"{job}_{number}"))
        return CommandState("ended", ", ".join(filter(None, known)))

    def _run(self, *command: str) -> str:
        done = _run_program(*command)
        if done.returncode != 0:
            raise OutsideError(
                "slurm",
                f"{command[0]} failed: {_error_of(done)}",
                "Try the same options with `sbatch --test-only`.",
            )
        return done.stdout.strip()


def slurm_options(words: Sequence[str]) -> tuple[str, ...]:
    """Return words such as ``partition=gpu exclusive`` as options of ``sbatch``."""
    options = []
    for word in (part for text in words for part in shlex.split(text)):
        name = word.lstrip("-").partition("=")[0]
        if not name or name in _OWN:
            raise UsageError(
                "sbatch-option",
                f"--sbatch {word!r}: "
                + ("perfci sets this option itself" if name else "this is no option"),
                "Write options of sbatch by their long names, as in --sbatch partition=gpu.",
            )
        options.append(f"--{word.lstrip('-')}")
    return tuple(options)


def require_slurm() -> None:
    """OutsideError if Slurm's programs aren't here."""
    lacking = [name for name in _PROGRAMS if shutil.which(name) is None]
    if lacking:
        raise OutsideError(
            "no-slurm",
            f"there is no {' and no '.join(lacking)} here",
            "Run this on a node that submits jobs, or take --engine local.",
        )


def array_script(plan: Plan, folder: JobFolder) -> str:
    """Return the script that each task runs: its own command, and its exit code in a file."""
    lines = [
        "#!/bin/sh",
        "case $SLURM_ARRAY_TASK_ID in",
        *(
            f"{number}) set -- {shlex.join(command)} ;;"
            for number, command in enumerate(plan.commands, start=1)
        ),
        "esac",
        f"cd {shlex.quote(str(folder.path))} || exit 4",
        "log=$PWD/shard-$SLURM_ARRAY_TASK_ID.log exit=$PWD/shard-$SLURM_ARRAY_TASK_ID.exit",
        f"cd {shlex.quote(plan.folder)} || exit 4",
        '"$@" > "$log" 2>&1 < /dev/null',
        'echo $? > "$exit"',
    ]
    return "\n".join(lines) + "\n"


def queued_tasks(printed: str) -> dict[int, CommandState]:
    """Return the state of each task in the output of ``squeue``, whose lines are ``%K|%T|%r``."""
    states = {}
    for line in printed.splitlines():
        task, phase, reason = line.split("|", 2)
        waits = phase in _WAITING
        why = reason if waits and reason != "None" else ""
        states[int(task)] = CommandState("waiting" if waits else "running", why)
    return states


def _reason(task: str) -> str:
    """Return in words why a task ended, as Slurm recorded it. Empty if unknown."""
    for command in (
        ("sacct", "--jobs", task, "--allocations", "--parsable2", "--noheader",
         "--format=State,NodeList"),
        ("scontrol", "show", "job", task, "--oneliner"),
    ):  # fmt: skip
        if shutil.which(command[0]) is None:
            continue
        done = _run_program(*command)
        if done.returncode == 0 and done.stdout.strip():
            return end_text(done.stdout)
    return ""


def end_text(printed: str) -> str:
    """Return the words for what ``sacct`` or ``scontrol`` printed of one task."""
    line = printed.strip().splitlines()[-1]
    if "JobState=" in line:
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        state, node = fields["JobState"], fields.get("NodeList", "")
    else:
        state, _, node = line.partition("|")
    name = state.split()[0]
    where = f" on {node}" if node and node not in {"(null)", "None assigned"} else ""
    return f"{_WORDS.get(name, f'Slurm says {name}')}{where}"


def _error_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return why a program failed, as far as it said so."""
    return done.stderr.strip() or f"exit code {done.returncode}"


def _run_program(*command: str) -> subprocess.CompletedProcess[str]:
    """Run one of Slurm's programs, out of reach of the terminal's Ctrl-C."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_ANSWER_S,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {_ANSWER_S:g} s")
