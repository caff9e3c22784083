"""Runs the commands of a job as an array of Slurm's, waits for them, and gathers their reports."""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.engine.job import CommandState, JobFolder, Phase, Plan
from perfci.errors import OutsideError, UsageError

_FIRST_PAUSE_S = 0.1
"""The first pause between two polls. Each pause is twice the last, up to ``pause_s``."""
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
    _job: str = ""

    def submit(self, plan: Plan) -> None:
        """Submit one array with a task for each command."""
        script = self.folder.path / "array.sh"
        script.write_text(array_script(plan, self.folder), encoding="utf-8")
        minutes = math.ceil(plan.time_limit_s / 60)
        job = self._run(
            "sbatch", "--parsable", f"--job-name={self.name}", "--no-requeue",
            f"--array={','.join(map(str, plan.numbers))}", f"--chdir={plan.folder}",
            f"--output={self.folder.path}/slurm-%a.log", f"--time={minutes}",
            *self.options, str(script),
        )  # fmt: skip
        self._job = job.partition(";")[0]

    def poll(self, plan: Plan) -> Mapping[int, CommandState]:
        """Ask Slurm for the tasks that wait or run. All other tasks have ended."""
        queued = self._queued()
        if queued is None:
            away = CommandState("waiting", "Slurm's controller to answer")
            return dict.fromkeys(plan.numbers, away)
        return {number: queued.get(number) or self._ended(number) for number in plan.numbers}

    def cancel(self) -> None:
        """Cancel by name, so that an array of unknown number is included. Wait until none runs.

        OutsideError if Slurm doesn't cancel: all tasks may run on.
        """
        done = _run_program("scancel", f"--name={self.name}")
        if done.returncode != 0:
            raise OutsideError(
                "slurm-not-cancelled",
                f"the array may still be waiting or running: scancel failed: {_error_of(done)}",
                f"Cancel it once Slurm answers: scancel --name={self.name}.",
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

    def _ended(self, number: int) -> CommandState:
        path = self.folder.exit_path(number)
        code = path.read_text(encoding="ascii").strip() if path.exists() else ""
        known = [f"exit code {code}"] if code else []
        if not code or int(code) > _SIGNALLED:  # perhaps Slurm's: the script outlives its command
            known.insert(0, _reason(f"{self._job}_{number}"))
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
            "Run this on a node that submits jobs.",
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


@dataclass(frozen=True, slots=True)
class GatheredReports:
    """The reports that were written, and how the commands ended, both by the commands' numbers.

    For a command without a report, ``ends`` also has the last line that it printed.
    """

    reports: Mapping[int, Path]
    ends: Mapping[int, str]
    cancelled: bool = False


def gather(
    plan: Plan, engine: SlurmEngine, *, shown: Callable[[str], None], pause_s: float
) -> GatheredReports:
    """Run the commands of ``plan``, and wait for all of them. Ctrl-C cancels them."""
    cancelled = False
    try:
        engine.submit(plan)
        states = _wait(plan, engine, shown, pause_s)
    except KeyboardInterrupt:
        cancelled = True
        shown("cancelling; waiting for what was measured so far …")
        engine.cancel()
        states = engine.poll(plan)
    return _gathered(plan, engine.folder, states, cancelled=cancelled)


def _wait(
    plan: Plan, engine: SlurmEngine, shown: Callable[[str], None], pause_s: float
) -> Mapping[int, CommandState]:
    """Return where the commands are once none runs and all have had time to show a report."""
    last_shown = ""
    pause = _FIRST_PAUSE_S
    ended: dict[int, float] = {}
    while True:
        states = engine.poll(plan)
        now = time.monotonic()
        there = [each for each in plan.numbers if engine.folder.report(plan, each).exists()]
        for number, state in states.items():
            if state.phase == "ended":
                ended.setdefault(number, now)
        text = progress_text(states, there)
        if text != last_shown:
            shown(text)
            last_shown = text
        if all(
            number in ended and (number in there or now - ended[number] >= engine.settle_s)
            for number in plan.numbers
        ):
            return states
        time.sleep(pause)
        pause = min(2.0 * pause, pause_s)


def progress_text(states: Mapping[int, CommandState], there: list[int]) -> str:
    """Return how many shards have reported, run and wait, and for what."""
    phases = Counter(state.phase for number, state in states.items() if number not in there)
    parts = [f"{len(there)} of {len(states)} shards have reported"]
    named: tuple[Phase, ...] = ("running", "waiting")
    parts += [f"{phases[name]} {name}" for name in named if phases[name]]
    if phases["ended"]:
        parts.append(f"{phases['ended']} without a report")
    waits = {state.why for state in states.values() if state.phase == "waiting"} - {""}
    return ", ".join(parts) + (f" ({', '.join(sorted(waits))})" if waits else "")


def _end_of(state: CommandState, *, cancelled: bool) -> str:
    if state.phase == "waiting" and state.why:
        return f"it was waiting for {state.why}"
    return state.why or ("cancelled" if cancelled else "it ended")


def _gathered(
    plan: Plan, folder: JobFolder, states: Mapping[int, CommandState], *, cancelled: bool
) -> GatheredReports:
    reports = {}
    ends = {}
    for number in plan.numbers:
        path = folder.report(plan, number)
        ends[number] = _end_of(states[number], cancelled=cancelled)
        if path.exists():
            reports[number] = path
        elif line := folder.last_line(number):
            ends[number] += f"; it said last: {line}"
    return GatheredReports(reports, ends, cancelled)
