"""The only way to standard output and standard error.

Names, commit messages, paths and logs are untrusted text. On a terminal they could hold escape
sequences, and in the log of a GitHub Actions runner a line that is a command to it. ``say`` cleans
whatever it is given. ``show`` takes only ``Clean``. Ruff bans every other way to print from this
package.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

import click

from perfci.report.clean import Clean, clean_styled, one_line
from perfci.units import counted, format_duration

if TYPE_CHECKING:
    from perfci.measure.progress import Progress, Shortage

_EVERY_S = 15.0
"""Without a terminal: least time between two lines of progress, in s."""


class _Quiet:
    """Whether the running command prints only its result and errors."""

    on = False


def be_quiet(*, on: bool) -> None:
    """From here on, print only the result and errors, or print all again."""
    _Quiet.on = on


def is_quiet() -> bool:
    """Return whether only the result and errors are wanted."""
    return _Quiet.on


def say(text: str, *, fg: str | None = None, err: bool = False) -> None:
    """Print ``text`` on one line, whatever it holds. A quiet command's notices are dropped."""
    if err and not fg and _Quiet.on:
        return
    _echo(f"{styled(text, fg=fg)}\n", err=err)


def say_red(text: str) -> None:
    """Print one line of what failed, to standard error."""
    say(text, fg="red", err=True)


def show(text: Clean, *, err: bool = False) -> None:
    """Print a whole text as it stands, with its own newlines."""
    _echo(text, err=err)


def show_all(texts: Iterable[Clean]) -> None:
    """Print texts one after the other. BrokenPipeError if standard output has no reader."""
    for text in texts:
        show(text)
    sys.stdout.flush()


def styled(text: str, *, fg: str | None = None, dim: bool | None = None) -> Clean:
    """Return ``text`` on one line, cleaned, in colour if the terminal wants that."""
    line = one_line(text)
    return (
        clean_styled(click.style(line, fg=fg, dim=dim)) if (fg or dim) and _wants_colour() else line
    )


def rewrite(line: Clean) -> None:
    """Put a line that fits in the place of the line that standard error's terminal is on."""
    _echo(f"\r\x1b[2K{line}", err=True)


def _echo(text: str, *, err: bool) -> None:
    """Print. Errors of standard error are ignored: the files and the exit code say the rest."""
    with suppress(OSError) if err else nullcontext():
        click.echo(text, nl=False, err=err)


def is_terminal(*, err: bool = False) -> bool:
    """Return whether the output goes to a terminal."""
    return (sys.stderr if err else sys.stdout).isatty()


def is_coloured(*, err: bool = False) -> bool:
    """Return whether the output may be coloured: on a terminal, but not under NO_COLOR."""
    return is_terminal(err=err) and _wants_colour()


def _wants_colour() -> bool:
    return not os.environ.get("NO_COLOR")  # https://no-color.org


def discard() -> None:
    """Print nothing more: standard output has no reader, and Python would complain at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_standard_files() -> None:
    """Open those of the three standard files that the caller closed (`>&-`) on /dev/null.

    Otherwise Python has None in their place, and the next file that is opened takes the number.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            mode = "w" if descriptor else "r"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def _counts(progress: Progress, before: int, before_s: float) -> str:
    """Return the rounds and the time that has passed, with those of sessions ``before``."""
    more = f"/{before + progress.planned}" if progress.done < progress.planned else ""
    elapsed = format_duration(before_s + progress.elapsed_s)
    return f"{before + progress.done}{more} rounds, {elapsed}"


def _shortage_text(shortage: Shortage) -> str:
    return (
        f"{counted(shortage.cases, 'case')} need about {format_duration(shortage.needed_s)}; "
        f"{format_duration(shortage.given_s)} given: about {shortage.enough_for:,} are measured, "
        "those of changed code first."
    )


class ProgressLine:
    """Shows the progress of a session, unless it is ``quiet``."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet or is_quiet()
        self._terminal = is_terminal(err=True)
        self._last = -_EVERY_S
        self._open = False
        self._short = False
        self._newest: Progress | None = None
        self._before, self._before_s = 0, 0.0

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
        """Show a round that begins, and once that the budget isn't enough for all cases."""
        if progress.shortage and not self._quiet and not self._short:
            self._short = True
            self.close()
            say(_shortage_text(progress.shortage), err=True)
        if self._newest and progress.done <= self._newest.done:  # a command's next session
            self._before += self._newest.done + 1
            self._before_s += self._newest.elapsed_s
        self._newest = progress
        now = time.monotonic()
        if self._quiet or (not self._terminal and now - self._last < _EVERY_S):
            return
        self._last = now
        self._show(f"[{_counts(progress, self._before, self._before_s)}] {progress.case}")

    def close(self) -> None:
        """Clear the line."""
        if self._open:
            rewrite(one_line(""))
            self._open = False

    def _show(self, text: str) -> None:
        if self._terminal:
            rewrite(one_line(text[: shutil.get_terminal_size().columns - 1]))
            self._open = True
        else:
            say(text, err=True)


def with_common_options(command: click.Command) -> click.Command:
    """Return ``command``, and each command of a group, with ``-h`` and ``-q``."""
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            with_common_options(subcommand)
        return _with_help(command)
    if any("--quiet" in parameter.opts for parameter in command.params):
        return command
    quiet = click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        callback=_hushed,
        help="Print only the result and errors.",
    )
    command.params.append(quiet)
    return _with_help(command)


def _with_help(command: click.Command) -> click.Command:
    """Return ``command`` with ``-h`` and ``--help``, whatever the settings of its first context.

    By itself, click makes the option for the first context, and keeps it for all others.
    """
    if command.add_help_option:
        command.add_help_option = False
        click.help_option("-h", "--help")(command)
    return command


def _hushed(_context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    be_quiet(on=value)
