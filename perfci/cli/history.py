"""``perfci history``: import, export, thin, show and acknowledge recorded runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.caller import ProgressLine, root_here
from perfci.cli.options import config_option, history_option
from perfci.cli.printing import is_quiet, say, show_all
from perfci.commands.project import configuration
from perfci.errors import UsageError
from perfci.history.records import KEEP_DAYS, NEAR
from perfci.outputs import require_distinct
from perfci.report.clean import clean_line
from perfci.units import counted, format_value

if TYPE_CHECKING:
    from perfci.history.history import OpenHistory

_FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
_ANY = click.Path(path_type=Path)


@click.group("history", epilog="Example: perfci history stats")
def history_command() -> None:
    """Import, export, thin, show and acknowledge what was recorded."""


@history_command.command("import", epilog="Example: perfci history import .asv/results/ old.jsonl")
@click.argument("files", nargs=-1, required=True, type=_ANY)
@click.option("-q", "--quiet", is_flag=True, help="Show nothing about what was left out.")
@history_option
@config_option
def import_files(
    files: tuple[Path, ...], quiet: bool, history: str | None, config_path: Path | None
) -> None:
    """Add what FILES hold: exports, SQLite histories, or other tools' results.

    asv (its results folder, or files), pytest-benchmark, pyperf and Google Benchmark are
    recognised by what they hold. A run that is there already isn't added again.
    """
    from perfci.commands.history import ImportProgress, importer

    progress = ProgressLine(quiet=quiet or is_quiet())

    def watch(file: Path, reading: ImportProgress) -> None:
        of = f"{reading.files:,} of {reading.of:,} files, " if reading.of else ""
        fields = {"file": str(file), "runs": reading.runs, "files": reading.files, "of": reading.of}
        progress.count(f"{of}{counted(reading.runs, 'run')} of {file}", **fields)

    imports = [(file, importer(file, partial(watch, file))) for file in files]
    with _opened(history, config_path, create=True) as opened, closing(progress):
        for file, add_to in imports:
            imported = add_to(opened)
            progress.close()
            say(clean_line(f"{file}: {imported.summary}"))
            for line in () if quiet else imported.details:
                say(f"  {clean_line(line)}", err=True)


@history_command.command("export", epilog="Example: perfci history export history.jsonl")
@click.argument("file", required=False, type=_FILE)
@click.option("--csv", "form", flag_value="csv", help="One line a point, for spreadsheets.")
@click.option("--json", "form", flag_value="json", default="json", help="JSON lines (the default).")
@history_option
@config_option
def export(file: Path | None, form: str, history: str | None, config_path: Path | None) -> None:
    """Write everything to FILE (default, and `-`: standard output).

    JSON lines hold all there is, and `import` reads them back. CSV leaves out workers, failures and
    environments' facts.
    """
    from perfci.commands.history import csv_lines, json_lines, write_export
    from perfci.commands.project import history_files

    lines = csv_lines if form == "csv" else json_lines
    file = None if file == Path("-") else file
    if file is not None:
        root = root_here()
        kept = history_files(history, configuration(root, config_path), root)
        require_distinct({"FILE": file}, kept)
    with _opened(history, config_path) as opened:
        if file is None:
            show_all(lines(opened))
        else:
            write_export(lines(opened), file)


@history_command.command("prune", epilog="Example: perfci history prune --keep-days 90 --dry-run")
@click.option(
    "--keep-days",
    type=click.IntRange(1),
    default=KEEP_DAYS,
    show_default=True,
    help="Thin only what was measured longer ago.",
)
@click.option(
    "--near",
    type=click.IntRange(0),
    default=NEAR,
    show_default=True,
    help="Number of commits to keep on both sides of a known change.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@history_option
@config_option
def prune(
    keep_days: int, near: int, dry_run: bool, history: str | None, config_path: Path | None
) -> None:
    """Thin old runs to one commit per week, in each environment and branch.

    A branch's first and newest commits stay, and so do those near a known change.
    """
    from datetime import UTC, datetime

    from perfci.commands.history import prune_history

    with _opened(history, config_path) as opened:
        now = datetime.now(UTC)  # noqa: TID251 (it is the one that reads the clock)
        pruned = prune_history(opened, now, keep_days=keep_days, near=near, dry_run=dry_run)
    verb = "would be" if dry_run else "were"
    for group in pruned:
        runs = counted(group.runs, "run")
        say(f"{group.environment}: {group.removed} of {runs} {verb} removed")
    if any(group.removed for group in pruned) and not (dry_run or is_quiet()):
        say("Their room in the file is used again by later runs.")


@history_command.command("stats", epilog="Example: perfci history stats")
@history_option
@config_option
def stats(history: str | None, config_path: Path | None) -> None:
    """Show how much is recorded, and check the whole database for damage."""

    with _opened(history, config_path) as opened:
        total = opened.statistics()
    say(f"{total.where}  revision {total.revision}, {format_value(total.size, 'bytes')}")
    say(
        f"{counted(total.runs, 'run')}, {counted(total.points, 'point')}, "
        f"{counted(total.outcomes, 'outcome')} of the gate, {counted(total.changes, 'change')} "
        f"known ({total.acknowledged} acknowledged)"
    )
    for group in total.environments:
        content = (
            f"{counted(group.runs, 'run')} of {counted(group.commits, 'commit')}, "
            f"{group.series} series, {group.oldest} to {group.newest}, "
            f"on {', '.join(group.runners)}"
        )
        say(clean_line(group.key))
        say(f"  {clean_line(content)}")


@history_command.command(
    "acknowledge", epilog="Example: perfci history acknowledge 1a2b3c --note 'Meant.'"
)
@click.argument("change", metavar="ID")
@click.option("--note", default="", help="Why it is accepted (default: as before).")
@click.option("--undo", is_flag=True, help="Take an acknowledgement and its note back.")
@history_option
@config_option
def acknowledge(
    change: str, note: str, undo: bool, history: str | None, config_path: Path | None
) -> None:
    """Accept the event or change ID (or the beginning of it) that `perfci trend` names."""
    if undo and note:
        raise UsageError(
            "undo-with-note",
            "--undo is given with --note",
            "Leave one of them out. An acknowledgement that is taken back has no note.",
        )
    with _opened(history, config_path) as opened:
        done = opened.acknowledge(change, note, undo=undo)
        say(f"{'no longer acknowledged' if undo else 'acknowledged'} {done}")


def _opened(
    given: str | None, config_path: Path | None, *, create: bool = False
) -> AbstractContextManager[OpenHistory]:
    """Open the history that the option or the configuration names, else the repository's own."""
    from perfci.commands.project import history_address
    from perfci.history.history import open_history

    root = root_here()
    address = history_address(given, configuration(root, config_path), root)
    return open_history(address, create=create)
