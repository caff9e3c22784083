"""The command line as the caller of a use case: its folder, its terminal, its allowed token."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.printing import is_quiet, is_terminal, log_event, rewrite, say
from perfci.units import first_of, format_duration

if TYPE_CHECKING:
    from perfci.commands.project import Caller
    from perfci.measure.executor import Executor
    from perfci.measure.progress import Progress
    from perfci.model.report import Comparison


_ALLOWED = f"{__name__}.allowed"


def _remember(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.meta[_ALLOWED] = value


# not passed to the commands: only the caller reads it
allow_token_option = click.option(
    "--allow-token",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Measure although a token is set or kept by git; benchmarks can read it.",
)


def token_allowed() -> bool:
    """Return whether the running command may measure although a token is set."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_ALLOWED, False))


def executor() -> Executor:
    """Return the executor that starts workers: the one passed to the command line, or processes."""
    from perfci.measure.executor import Executor

    context = click.get_current_context(silent=True)
    given = context.find_root().obj if context else None
    return given or Executor()


@contextmanager
def calling(*, quiet: bool = False) -> Iterator[Caller]:
    """Yield the caller. Its progress is shown on a line, which is cleared at the end."""
    from perfci.commands.project import Caller

    line = ProgressLine(quiet=quiet or is_quiet())

    def say_below(text: str, *, err: bool = False) -> None:
        line.close()
        say(text, err=err)

    try:
        yield Caller(
            folder=Path.cwd(),
            say=say_below,
            announce=line.announce,
            step=line.say,
            progress=line,
            token_allowed=token_allowed(),
            executor=executor(),
        )
    finally:
        line.close()


def root_here() -> Path:
    """Return the repository around the current folder, or that folder, without calling git."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


_EVERY_S = 15.0
_BLINK_S = 0.1


def _provisional_text(rows: Sequence[Comparison]) -> str:
    from perfci.report.rows import change_text

    shown = first_of([f"{row.case} {row.metric} {change_text(row)}" for row in rows], 3)
    return f"Provisional, after the first rounds: {shown}"


class ProgressLine:
    """Shows the progress of a session, and the time that is left."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = is_terminal(err=True)
        self._last = -_EVERY_S
        self._counted: float | None = None
        self._open = False
        self._looked = False

    def say(self, text: str) -> None:
        """Show a step that isn't a round: checking out, building, looking for benchmarks."""
        if not self._quiet:
            self._show(text)

    def announce(self, text: str) -> None:
        """Show what will be measured, and leave it there."""
        if not self._quiet:
            self.close()
            say(text, err=True)

    def __call__(self, progress: Progress) -> None:
        """Show a round that begins, and once what looks worse so far."""
        if progress.provisional and not self._quiet and not self._looked:
            self._looked = True
            self.close()
            say(_provisional_text(progress.provisional), err=True)
        now = time.monotonic()
        if self._quiet or (not self._terminal and now - self._last < _EVERY_S):
            return
        self._last = now
        left = "" if progress.left_s is None else f", {format_duration(progress.left_s)} left"
        self._show(
            f"[{progress.done}/{progress.planned} rounds, "
            f"{format_duration(progress.elapsed_s)}{left}] {progress.case}"
        )

    def count(self, text: str, **fields: object) -> None:
        """Show the progress of something that counts quickly, in a log as the event ``progress``.

        A terminal shows it ten times a second. Otherwise it is shown every 15 s, and in a log at
        once.
        """
        now, before = time.monotonic(), self._counted
        every = _BLINK_S if self._terminal else _EVERY_S
        if self._quiet or (before is not None and now - before < every):
            return
        self._counted = now
        if not log_event("progress", **fields) and (self._terminal or before is not None):
            self._show(text)

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
