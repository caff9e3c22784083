"""A job: its plan of commands, the engine that runs them, its folder, and waiting for its reports.

Commands without a report are submitted. Ctrl-C cancels them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from perfci.errors import DamagedFile, OutsideError, UsageError
from perfci.files import read_regular, require_writable, write_file
from perfci.model.codec import CodecError, decode, encode

T = TypeVar("T")
_LAST_BYTES = 1 << 16
"""How much of a log's end is read."""
_FIRST_PAUSE_S = 0.1
"""The first pause between two polls. Each pause is twice the last, up to ``pause_s``."""
Phase = Literal["absent", "unknown", "waiting", "running", "ended"]
"""``absent``: never submitted. ``unknown``: perhaps submitted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An array of commands that run in ``folder``. The first one is number 1.

    Each command writes its report to its own file, named in ``reports``, and may take
    ``time_limit_s``. ``engine`` names the engine that runs the commands: another engine could not
    find them again. ``configuration`` is a hash of the configuration that they run under.
    """

    folder: str
    commands: tuple[tuple[str, ...], ...]
    reports: tuple[str, ...]
    time_limit_s: float
    engine: str = ""
    configuration: str = ""

    @property
    def numbers(self) -> range:
        """The commands' numbers."""
        return range(1, len(self.commands) + 1)


@dataclass(frozen=True, slots=True)
class CommandState:
    """State of one command. ``why`` is the reason of its end, or what it waits for."""

    phase: Phase
    why: str = ""


class Engine(Protocol):
    """Runs a plan's commands. The job's folder has what finds them again after a kill."""

    @property
    def settle_s(self) -> float:
        """Return the longest delay until the report of a command that ended can be seen."""

    def submit(self, plan: Plan, numbers: Sequence[int]) -> None:
        """Start the commands with these numbers, or queue them. Each runs once."""

    def poll(self, plan: Plan) -> Mapping[int, CommandState]:
        """Return the state of each command of ``plan``, by its number."""

    def cancel(self, plan: Plan) -> None:
        """End all commands that haven't ended. They report what they have measured so far."""


@dataclass(frozen=True, slots=True)
class MachineSlot:
    """A command's own part of a machine: its ``cores``, and a GPU if it has one."""

    cores: tuple[int, ...]
    device: str = ""


def mark_of(*words: object) -> str:
    """Return a short hash of ``words``, as a name that only equal words have."""
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class JobFolder:
    """A folder that is shared by the commands and the process that waits for them."""

    path: Path

    def make(self) -> None:
        """Make the folder. OutsideError if it can't be made, or nothing can be written in it.

        Writing is tried now, because a measurement is lost if its report can't be written later.
        """
        try:
            require_writable(self.path / ".writable")
        except OSError as error:
            raise OutsideError(
                "job-folder",
                f"{self.path} can't be the job's folder: {error.strerror or error}",
                "Give --job-dir a folder that can be written; with --engine slurm it has to be on "
                "a file system that all nodes share. Without --job-dir it is in the cache folder, "
                "which PERFCI_CACHE_DIR names.",
            ) from error

    def open(self, plan: Plan) -> bool:
        """Save ``plan``. Return whether it was saved before, so that the job goes on.

        UsageError if the folder has another plan: its commands may still run and write here.
        """
        kept = self._kept("plan.json", Plan)
        if kept == plan:
            return True
        if kept is not None:
            raise UsageError(
                "job-of-another",
                f"{self.path} is the folder of another comparison, or of the same under another "
                "configuration, which is not done",
                "Give that one's command again, with its configuration, or another --job-dir; or "
                "end what still runs of it, and remove the folder.",
            )
        self.clear(plan)
        write_file(self.path / "plan.json", encode(plan))
        return False

    def clear(self, plan: Plan) -> None:
        """Forget the plan and all that its commands left, but for the logs."""
        self.path.mkdir(parents=True, exist_ok=True)
        for name in ("slots.json", "plan.json", "submitted.json", *plan.reports):
            (self.path / name).unlink(missing_ok=True)
        for number in plan.numbers:
            self.exit_path(number).unlink(missing_ok=True)

    def report(self, plan: Plan, number: int) -> Path:
        """Return the file of the report of command ``number``."""
        return self.path / plan.reports[number - 1]

    def log(self, number: int) -> Path:
        """Return the file of what command ``number`` prints."""
        return self.path / f"shard-{number}.log"

    def exit_path(self, number: int) -> Path:
        """Return the file to which a script writes the exit code of command ``number``."""
        return self.path / f"shard-{number}.exit"

    def last_line(self, number: int) -> str:
        """Return the last line that command ``number`` printed, or the message in it."""
        messages = (
            each if isinstance(each, str) else each.get("message") for each in self._last(number)
        )
        return next((str(each) for each in messages if each), "")

    def error(self, number: int) -> Mapping[str, Any]:
        """Return the error that command ``number`` ended by, if its log in JSON has one."""
        events = [each for each in self._last(number) if isinstance(each, dict)]
        return next((event for event in events if event.get("event") == "error"), {})

    def _last(self, number: int) -> Iterator[str | dict[str, Any]]:
        """Yield the lines that command ``number`` printed, the last first, with JSON parsed."""
        try:
            with self.log(number).open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - _LAST_BYTES))
                lines = file.read().decode(errors="replace").split("\n")
        except FileNotFoundError:
            return
        for line in reversed(lines):
            try:
                plain = json.loads(line)
            except ValueError:
                plain = None
            yield plain if isinstance(plain, dict) else line.strip()

    def slots(self) -> tuple[MachineSlot, ...]:
        """Return the parts of a machine that the job began with, or nothing before it began."""
        return self._kept("slots.json", tuple[MachineSlot, ...]) or ()

    def keep_slots(self, slots: Sequence[MachineSlot]) -> None:
        """Save the slots that the job begins with, unless it has begun before."""
        if not self.slots():
            write_file(self.path / "slots.json", encode(tuple(slots)))

    def submitted(self) -> dict[str, Any]:
        """Return what the engine saved, or nothing before the first submission."""
        return self._kept("submitted.json", dict[str, Any]) or {}

    def keep_submitted(self, kept: dict[str, Any]) -> None:
        """Save what the engine needs to find its commands again."""
        write_file(self.path / "submitted.json", json.dumps(kept) + "\n")

    def _kept(self, name: str, kind: type[T]) -> T | None:
        """Return what a file stores, or None without the file. DamagedFile if it can't be read."""
        try:
            return decode(read_regular(self.path / name), kind)
        except FileNotFoundError:
            return None
        except CodecError as error:
            raise DamagedFile(
                "damaged-job",
                f"{self.path / name} can't be read: {error}",
                f"Cancel what still runs of it, and remove {self.path}.",
            ) from error


@dataclass(frozen=True, slots=True)
class GatheredReports:
    """The reports that were written, and how the commands ended, both by the commands' numbers.

    For a command without a report, ``ends`` also has the last line that it printed.
    """

    reports: Mapping[int, Path]
    ends: Mapping[int, str]
    cancelled: bool = False


def gather(
    plan: Plan,
    engine: Engine,
    folder: JobFolder,
    *,
    finished: Callable[[Path], bool],
    shown: Callable[[str], None],
    pause_s: float,
) -> GatheredReports:
    """Run the commands of ``plan`` that have no finished report, and wait for all commands.

    ``finished(report)`` tells whether an earlier report is complete: its command is then skipped.
    """
    began = engine.poll(plan)
    while any(state.phase == "unknown" for state in began.values()):
        # what was submitted by a process that was killed then must not run twice
        shown(progress_text(began, []))
        time.sleep(pause_s)
        began = engine.poll(plan)
    again = []
    for number in plan.numbers:
        path = folder.report(plan, number)
        if began[number].phase in {"waiting", "running"} or (path.exists() and finished(path)):
            continue
        path.unlink(missing_ok=True)
        folder.exit_path(number).unlink(missing_ok=True)
        again.append(number)
    cancelled = False
    try:
        if again:
            engine.submit(plan, again)
        states = _wait(plan, engine, folder, shown, pause_s)
    except KeyboardInterrupt:
        cancelled = True
        shown("cancelling; waiting for what was measured so far …")
        engine.cancel(plan)
        states = engine.poll(plan)
    return _gathered(plan, folder, states, cancelled=cancelled)


def _wait(
    plan: Plan,
    engine: Engine,
    folder: JobFolder,
    shown: Callable[[str], None],
    pause_s: float,
) -> Mapping[int, CommandState]:
    """Return where the commands are once none runs and all have had time to show a report."""
    last_shown = ""
    pause = _FIRST_PAUSE_S
    ended: dict[int, float] = {}
    while True:
        states = engine.poll(plan)
        now = time.monotonic()
        there = [each for each in plan.numbers if folder.report(plan, each).exists()]
        for number, state in states.items():
            if state.phase in {"ended", "absent"}:
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
    named: tuple[Phase, ...] = ("running", "waiting", "unknown")
    parts += [f"{phases[name]} {name}" for name in named if phases[name]]
    if phases["ended"]:
        parts.append(f"{phases['ended']} without a report")
    waits = {state.why for state in states.values() if state.phase in {"waiting", "unknown"}} - {""}
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
