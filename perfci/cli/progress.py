"""Progress on standard error: one line that updates on a terminal, a line now and then in CI."""

from __future__ import annotations

import time

from perfci.cli.printing import is_terminal, rewrite, say
from perfci.session.session import Progress
from perfci.units import format_duration

_EVERY_S = 15.0


class ProgressLine:
    """Shows where a session is and how long it still takes."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = is_terminal(err=True)
        self._last = -_EVERY_S
        self._open = False

    def say(self, text: str) -> None:
        """Show a step that isn't a round: checking out, building, looking for benchmarks."""
        if not self._quiet:
            self._show(text)

    def __call__(self, progress: Progress) -> None:
        """Show a round that begins."""
        now = time.monotonic()
        if self._quiet or (not self._terminal and now - self._last < _EVERY_S):
            return
        self._last = now
        left = "" if progress.left_s is None else f", {format_duration(progress.left_s)} left"
        self._show(
            f"[{progress.done}/{progress.planned} rounds, "
            f"{format_duration(progress.elapsed_s)}{left}] {progress.case}"
        )

    def close(self) -> None:
        """Clear the line."""
        if self._open:
            rewrite("", width=0)
            self._open = False

    def _show(self, text: str) -> None:
        if self._terminal:
            import shutil

            width = shutil.get_terminal_size().columns - 1
            rewrite(text, width=width)
            self._open = True
        else:
            say(text, err=True)
