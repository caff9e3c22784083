"""The ``perfci`` command line: finds the command, and turns errors into messages and exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from perfci.cli.printing import (
    be_quiet,
    discard,
    open_standard_files,
    show,
    styled,
    with_common_options,
)
from perfci.errors import EXIT_INTERRUPTED, EXIT_OUTSIDE, Bug, PerfciError, UsageError, refusal
from perfci.report.clean import clean_lines, clean_styled
from perfci.version import VERSION

if TYPE_CHECKING:
    from perfci.measure.executor import Executor

_COMMANDS = {
    "compare": ("measure", "Measure two commits side by side and decide whether head got worse."),
    "check": ("measure", "Measure head against the stored baseline."),
    "run": ("measure", "Measure one commit and show its numbers."),
    "list": ("measure", "List the cases that would be measured."),
    "nightly": ("history", "Record a branch's history: its tip, and the gaps of earlier nights."),
    "history": ("history", "Import and export recorded runs, and acknowledge changes."),
    "trend": ("trend", "Say when and where the recorded metrics moved: a site, Markdown, JSON."),
    "explain": ("trend", "Find differences inside a case: operators, shapes, lines."),
    "bisect": ("trend", "Find the commit of a range that made a case slower, or faster."),
    "calibrate": ("machine", "Show how small a slow-down this machine sees."),
    "baseline": ("baseline", "Update, list, show, diff or remove stored baselines."),
    "report": ("report", "Render a report file again, in any format."),
    "merge": ("shards", "Join the reports of shards to one, with one verdict."),
    "comment": ("forges", "Leave reports as one comment and one check on a pull request."),
    "init": ("forges", "Write a configuration, a first benchmark and GitHub's workflows."),
    "doctor": ("machine", "Show problems of this machine that disturb measurements."),
}
"""Each command's module in this package, which defines ``NAME_command``, and its summary."""
_ANYWHERE = {"history", "trend", "report", "merge", "comment"}
"""Commands that measure nothing. The others need Linux."""


class _LazyGroup(click.Group):
    """Imports a command's module when it is called, so that ``perfci --help`` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        if sys.platform != "linux" and cmd_name not in _ANYWHERE:
            raise UsageError(
                "linux-only",
                f"`perfci {cmd_name}` needs Linux: perfci measures nowhere else",
                f"These work here: {', '.join(sorted(_ANYWHERE))}.",
            )
        import importlib

        module = importlib.import_module(f"{__package__}.{_COMMANDS[cmd_name][0]}")
        command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        assert isinstance(command, click.Command)  # noqa: S101 (the table above names it)
        return with_common_options(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: perfci compare main HEAD",
)
@click.version_option(VERSION, prog_name="perfci")
def cli() -> None:
    """A performance-regression gate for PyTorch."""


def main() -> None:
    """Run the command line and exit with one of the README's exit codes."""
    from perfci.measure.process_cleanup import InterruptHandler

    open_standard_files()
    interrupt = InterruptHandler()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore SIGINT
        signal.signal(number, interrupt)
    # under nohup, SIGHUP is ignored: leave that as it is
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str], executor: Executor | None = None) -> int:
    """Run the command of these arguments and return its exit code.

    ``executor`` starts its workers.
    """
    try:
        code = _invoke(arguments, executor)
    except click.exceptions.Exit as ended:
        code = ended.exit_code
    except click.ClickException as error:
        _say_usage(error)
        code = error.exit_code
    except PerfciError as error:
        _say_error(error)
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        show(clean_lines("perfci: interrupted.\n"), err=True)
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        discard()
        code = EXIT_OUTSIDE
    except OSError as error:
        code = _say_error(refusal(error))
    except Exception as error:  # noqa: BLE001 (shown as a bug; Python's own exit code, 1, would say "regression")
        code = _say_error(_bug(error))
    code = code if isinstance(code, int) else 0
    be_quiet(on=False)
    return code


def _invoke(arguments: Sequence[str], executor: Executor | None) -> object:
    """Run the command, but not by ``cli.main``, which turns a closed pipe into exit code 1."""
    if "_PERFCI_COMPLETE" in os.environ:
        return cli.main(prog_name="perfci", standalone_mode=False)
    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    with cli.make_context("perfci", list(arguments), obj=executor) as context:
        return cli.invoke(context)


def _say_error(error: PerfciError) -> int:
    """Print the message and the advice. Both may quote untrusted names and logs."""
    message = clean_lines(f"perfci: {error.message}")
    show(clean_styled(f"{click.style(message, fg='red')}\n"), err=True)
    if error.advice:
        show(clean_lines(f"{error.advice}\n"), err=True)
    slug = styled(f"[{error.slug}]", dim=True)
    show(clean_styled(f"{slug}\n"), err=True)
    return error.exit_code


def _say_usage(error: click.ClickException) -> None:
    """Print click's message, which quotes the command line as it is."""
    out = io.StringIO()
    error.show(out)
    show(clean_lines(out.getvalue()), err=True)


def _bug(error: Exception) -> PerfciError:
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    return Bug(
        "internal",
        f"a bug in perfci: {type(error).__name__}: {error} ({frame.filename}:{frame.lineno})",
        "".join(traceback.format_tb(error.__traceback__)) + "Please report it with these lines.",
    )
