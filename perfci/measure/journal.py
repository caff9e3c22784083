"""The session's log files, and the signals that end a session early."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from types import FrameType

from perfci.model.worker import WorkerFailure, WorkerOutput, WorkerResult


def slug(text: str) -> str:
    """Return ``text`` as part of a file name; different texts may give the same."""
    return re.sub(r"[^A-Za-z0-9_.=-]+", "_", text).strip("_")[:100] or "case"


class Journal:
    """Writes ``session.log`` and ``workers/*.log`` under one folder.

    A log is never worth a session: ``notes`` say what can't be written any more.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "workers").mkdir(parents=True, exist_ok=True)
        self._path = folder / "session.log"
        self._started = time.monotonic()
        self._trouble = ""

    def note(self, text: str) -> None:
        """Append one line with the time since the start, in s."""
        self._write(self._path, "a", f"{time.monotonic() - self._started:9.2f} {text}\n")

    def result(self, case_slug: str, result: WorkerResult, printed: str) -> None:
        """Note one worker's result and keep what it printed."""
        match result:
            case WorkerOutput() as output:
                p50 = output.values.get("latency_p50")
                self.note(
                    f"{output.case} round {output.round} {output.side}"
                    f"{f' of ancestor {output.ancestor}' if output.ancestor else ''}: "
                    f"{output.samples} samples, p50 {p50 if p50 is None else f'{p50:.6g} s'}, "
                    f"{output.bursts_set_aside} bursts excluded"
                )
                side, number = output.side, output.round
            case WorkerFailure(round=number, failure=failure):
                side = failure.side
                self.note(
                    f"{failure.case} round {number} {side}: FAILED {failure.kind}: "
                    f"{failure.message}"
                )
        if printed.strip():
            path = self.folder / "workers" / f"{case_slug}-{number}-{side}.log"
            self._write(path, "w", printed)

    def notes(self) -> tuple[str, ...]:
        """Return what the report should say of the log: what it lacks, if it lacks anything."""
        return (self._trouble,) if self._trouble else ()

    def _write(self, path: Path, mode: str, text: str) -> None:
        try:
            with path.open(mode, encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            why = f"{path} can't be written: {error.strerror}"
            self._trouble = self._trouble or f"The session's log is incomplete: {why}."


class InterruptHandler:
    """Handles Ctrl-C, or a cancelled CI job's SIGINT and then SIGTERM.

    The first signal ends the measuring. The next one finds perfci tidying up and writing its report
    of what is there, which must not be lost, and is passed over, as is a first one that comes when
    the measuring has ended. Then another one ends perfci.
    """

    def __init__(self) -> None:
        self._spare = False
        self._raised = False
        self._pending = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle a signal: raise KeyboardInterrupt, or pass over it."""
        if self._spare:
            self._spare = False
            self._pending = not self._raised
            return
        self._spare = self._raised = True
        raise KeyboardInterrupt

    def measuring_begins(self) -> None:
        """Let the next signal end it; one that was passed over meanwhile ends it now."""
        if self._pending:
            self._pending, self._raised = False, True
            raise KeyboardInterrupt
        self._spare = self._raised

    def measuring_ended(self) -> None:
        """Pass over the next signal: there is a report to be written."""
        self._spare = True


def measuring_begins() -> None:
    """Say so to this process's handler. Raises KeyboardInterrupt where a signal waits for it."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, InterruptHandler):
        handler.measuring_begins()


def measuring_ended() -> None:
    """Say so to this process's handler, where it is perfci's."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, InterruptHandler):
        handler.measuring_ended()
