"""``perfci nightly`` records a branch's runs. ``history`` imports and exports them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import (
    allow_token_option,
    command_budget_option,
    config_option,
    configuration_here,
    history_option,
    opened_project,
    python_option,
    select_option,
)
from perfci.cli.printing import say, say_red, show_all
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS
from perfci.files import write_lines, writing
from perfci.outputs import STANDARD_OUTPUT, require_distinct
from perfci.report.clean import clean_json, clean_line
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.commands.nightly import NightSummary
    from perfci.history.store import OpenHistory
    from perfci.model.run import RecordedRun

_FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
_ANY = click.Path(path_type=Path)
_FAILURES_SHOWN = 5
"""Failures of a run that are printed."""


@click.group("history", epilog="Example: perfci history export")
def history_command() -> None:
    """Import and export recorded runs, and acknowledge changes."""


@history_command.command("import", epilog="Example: perfci history import .asv/results/ old.jsonl")
@click.argument("files", nargs=-1, required=True, type=_ANY)
@history_option
@config_option
def import_files(files: tuple[Path, ...]) -> None:
    """Import FILES: exports, SQLite histories, or other tools' results.

    asv (its results folder, or files), pytest-benchmark and Google Benchmark are
    recognised by their content. A run that is there already isn't added again.
    """
    from perfci.history.interchange import importer

    imports = [(file, importer(file)) for file in files]
    with _opened(create=True) as opened:
        for file, add_to in imports:
            imported = add_to(opened)
            say(clean_line(f"{file}: {imported.summary}"))
            for line in imported.details:
                say(f"  {clean_line(line)}", err=True)


@history_command.command("export", epilog="Example: perfci history export history.jsonl")
@click.argument("file", required=False, type=_FILE)
@history_option
@config_option
def export(file: Path | None) -> None:
    """Write everything to FILE (default, and `-`: standard output), as JSON lines for `import`."""
    from perfci.commands.history import history_files
    from perfci.history.interchange import to_lines

    root, config = configuration_here()
    if file and file != STANDARD_OUTPUT:
        require_distinct({"FILE": file}, history_files(config, root))
    with _opened() as opened:
        lines = (clean_json(line.decode()) for line in to_lines(opened.export()))
        if file is None or file == STANDARD_OUTPUT:
            show_all(lines)
            return
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_lines(file, (line.encode("utf-8", "replace") for line in lines))


@history_command.command(
    "acknowledge", epilog="Example: perfci history acknowledge 1a2b3c --note 'Meant.'"
)
@click.argument("change", metavar="ID")
@click.option("--note", default="", help="Why it is accepted (default: as before).")
@click.option("--undo", is_flag=True, help="Open it again.")
@history_option
@config_option
def acknowledge(change: str, note: str, undo: bool) -> None:
    """Accept the event or change ID (or the beginning of it) that `perfci trend` names."""
    with _opened() as opened:
        done = opened.acknowledge(change, note, undo=undo)
    say(f"{'opened' if undo else 'acknowledged'} {done}")


def _opened(*, create: bool = False) -> AbstractContextManager[OpenHistory]:
    """Open the history that the configuration names, else the repository's own."""
    from perfci.commands.history import history_address
    from perfci.history.store import open_history

    root, config = configuration_here()
    return open_history(history_address(config, root), create=create)


@click.command(
    "nightly",
    epilog="Example: perfci nightly --commits main~20..main --budget 2h\n\n"
    "Exit codes: 0 recorded, 2 usage, 3 the newest commit failed, or interrupted, "
    "4 git, disk or database.",
)
@click.argument("branch", required=False)
@click.option("--commits", metavar="OLD..NEW", help="Fill the gaps of these commits.")
@click.option("--last", type=click.IntRange(1), help="The tip, and the gaps of the last N commits.")
@history_option
@command_budget_option
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Try again commits and cases that failed.",
)
@click.option("--runner", metavar="NAME", help="This machine's name (default: its host name).")
@config_option
@select_option
@python_option
@allow_token_option
def nightly_command(**given: Any) -> int:
    """Measure BRANCH's tip and record it. With --commits, fill the gaps of a range.

    BRANCH defaults to the default branch. The tip is measured once a day. A gap is a commit without
    a run in this environment, or a case that its run lacks. The newest come first, each is recorded
    when it is done, and nothing is measured twice. After a kill, start it again.
    """
    if given["commits"] and (given["branch"] or given["last"]):
        raise click.UsageError("--commits names the commits. Leave out BRANCH and --last")
    from perfci.commands.nightly import NightlyOptions, nightly

    with opened_project() as project:
        summary = nightly(project, NightlyOptions(**given))
    _show_night(summary)
    summary.require_progress()
    # an older commit that fails now, or lacks a new case, fails no night
    failed = any(run.failed for run in summary.recorded if run.sha == summary.commits[0].sha)
    return EXIT_NO_VERDICT if failed or summary.interrupted else EXIT_PASS


def _show_night(summary: NightSummary) -> None:
    subjects = {commit.sha: commit.subject for commit in summary.commits}
    if summary.environment:  # it is known once the first commit was looked at
        say(f"environment {summary.environment}")
    for run in summary.recorded:
        say(clean_line(f"recorded  {run.sha[:10]}  {_counts(run)}  {run.subject}", 200))
        for case, why in list(run.failed.items())[:_FAILURES_SHOWN]:
            say_red(clean_line(f"failed    {case}: {why}", 300))
    for gap, why in summary.left:
        subject = subjects.get(gap.sha, "")
        line = f"left      {gap.sha[:10]}  {counted(len(gap.cases), 'case')}: {why}  {subject}"
        say(clean_line(line, 200))
    if summary.interrupted:
        for note in summary.notes:
            say(clean_line(note, 300), err=True)
        say("interrupted. Recorded commits stay, and the next start continues there")
    elif not (summary.recorded or summary.left):
        say("nothing to record: every case of these commits is in the history")


def _counts(run: RecordedRun) -> str:
    measured = counted(len({point.case for point in run.points}), "case")
    return f"{measured}, {len(run.failed)} failed" if run.failed else measured
