"""Signals that end a session early, and leave its report to be written."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupt:
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
    if isinstance(handler, Interrupt):
        handler.measuring_begins()


def measuring_ended() -> None:
    """Say so to this process's handler, where it is perfci's."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, Interrupt):
        handler.measuring_ended()
