"""A job of Slurm's: its plan of commands, and the folder that it shares with who waits for it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perfci.errors import OutsideError

_LAST_BYTES = 1 << 16
"""How much of a log's end is read."""
Phase = Literal["waiting", "running", "ended"]


@dataclass(frozen=True, slots=True)
class Plan:
    """An array of commands that run in ``folder``. The first one is number 1.

    Each command writes its report to its own file, named in ``reports``, and may take
    ``time_limit_s``.
    """

    folder: str
    commands: tuple[tuple[str, ...], ...]
    reports: tuple[str, ...]
    time_limit_s: float

    @property
    def numbers(self) -> range:
        """The commands' numbers."""
        return range(1, len(self.commands) + 1)


@dataclass(frozen=True, slots=True)
class CommandState:
    """State of one command. ``why`` is the reason of its end, or what it waits for."""

    phase: Phase
    why: str = ""


@dataclass(frozen=True, slots=True)
class JobFolder:
    """A folder that is shared by the commands and the process that waits for them."""

    path: Path

    @classmethod
    def make(cls, parent: Path) -> JobFolder:
        """Make a new folder in ``parent``. OutsideError if nothing can be written there."""
        try:
            parent.mkdir(parents=True, exist_ok=True)
            return cls(Path(tempfile.mkdtemp(prefix="job-", dir=parent)))
        except OSError as error:
            raise OutsideError(
                "job-folder",
                f"{parent} can't have the job's folder: {error.strerror or error}",
                "Give --job-dir a folder that can be written, on a file system that all nodes "
                "share. Without --job-dir it is in the cache folder, which PERFCI_CACHE_DIR names.",
            ) from error

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
