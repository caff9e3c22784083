"""Report files that a command is given: the report, or what its cases took."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.printing import say
from perfci.errors import OutsideError
from perfci.reading import read_regular

if TYPE_CHECKING:
    from perfci.record.report import Report
    from perfci.verdict.sharding import Shard


def load_report(path: Path) -> Report:
    """Return the report in ``path``. OutsideError where there is none, or a damaged one."""
    from perfci.report.json_report import read_report
    from perfci.report.limits import MOST_BYTES

    try:
        text = read_regular(path, MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise OutsideError(
            "unreadable", f"{path} can't be read: {reason}", "Name a file that --json wrote."
        ) from error
    return read_report(text, str(path))


def load_durations(path: Path | None) -> Mapping[str, float]:
    """Return what each case took in the report in ``path``, in s; nothing where there is none."""
    if path is None:
        return {}
    durations = load_report(path).durations
    if not durations:
        say(f"perfci: {path} tells no durations; all cases count alike.", err=True)
    return durations


def durations_of_shard(shard: Shard | None, path: Path | None) -> Mapping[str, float]:
    """Return by what ``--shard`` splits; a usage error where there is nothing to split."""
    if shard is None and path is not None:
        raise click.UsageError("--durations says how to split the cases: give --shard as well")
    return load_durations(path)
