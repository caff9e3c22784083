"""Standard error for programs: ``--log-format json`` makes one JSON object a line of it.

What a command finds is on standard output and in its files as ever.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

from perfci.model.version import VERSION
from perfci.render.clean import Clean, clean_json


@dataclass(slots=True)
class Log:
    """Which command is logged, and since when; none while ``command`` is empty."""

    command: str = ""
    began: float = 0.0

    def begin(self, command: str) -> None:
        """Log from here on."""
        self.command, self.began = command, time.monotonic()

    def line(self, event: str, **fields: Any) -> Clean:
        """Return one event as a line of JSON."""
        clock = datetime.now(UTC)  # noqa: TID251 (when each line was written is what a log says)
        now = clock.isoformat(timespec="milliseconds")
        told = {"time": now, "event": event, "command": self.command} | fields
        return clean_json(json.dumps(told, ensure_ascii=False) + "\n")

    def messages(self, text: str) -> tuple[Clean, ...]:
        """Return an event for each line of what would have been printed."""
        lines = click.unstyle(text).splitlines()
        return tuple(self.line("message", message=line) for line in lines if line.strip())

    def end(self, exit_code: int) -> Clean:
        """Return the last event, and log no more."""
        seconds = round(time.monotonic() - self.began, 3)
        line = self.line("end", exit_code=exit_code, seconds=seconds)
        self.command = ""
        return line


LOG = Log()
"""Of this process: its standard error is one, too."""


def with_common_options(command: click.Command) -> click.Command:
    """Return ``command`` with ``--log-format`` and ``-q``, and so each command of a group."""
    quiet = next((one for one in command.params if "--quiet" in one.opts), None)
    if quiet is None and not isinstance(command, click.Group):
        help_text = "Print what was asked for and errors only."
        quiet = click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, help=help_text)
        command.params.append(quiet)
    if quiet is not None:
        quiet.callback = _hushed
    if not any("--log-format" in one.opts for one in command.params):
        command.params.append(
            click.Option(
                ["--log-format"],
                type=click.Choice(["text", "json"]),
                envvar="PERFCI_LOG_FORMAT",
                expose_value=False,
                is_eager=True,
                callback=_chosen,
                help="Standard error as text, or as one JSON object a line [default: text].",
            )
        )
    if isinstance(command, click.Group):
        for one in command.commands.values():
            with_common_options(one)
    return command


def _hushed(_context: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    from perfci.cli.printing import be_quiet

    be_quiet(on=value)
    return value


def _chosen(context: click.Context, _: click.Parameter, value: str | None) -> None:
    from perfci.cli.printing import log_event

    if value == "json" and not isinstance(context.command, click.Group):
        LOG.begin(context.command_path.removeprefix("perfci "))
        log_event("begin", version=VERSION)
