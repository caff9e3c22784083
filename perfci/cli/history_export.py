"""Writing an export: to a file that is there whole or not at all, or to standard output."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.cli.output import unwritable
from perfci.cli.printing import show_all
from perfci.report.clean import Clean, clean_json, clean_lines
from perfci.writing import write_lines

if TYPE_CHECKING:
    from perfci.store.history.history import History

_COLUMNS = (
    "environment", "case", "metric", "unit", "direction", "value", "workers", "sha", "subject",
    "branch", "committed_at", "measured_at", "position", "runner", "source", "run",
)  # fmt: skip


CSV_BEGINNING = ",".join(_COLUMNS[:4]).encode()
"""What tells an export as CSV from anything else that is given to ``history import``."""


def json_lines(history: History) -> Iterator[Clean]:
    """Yield everything as lines that ``history import`` reads back."""
    from perfci.store.history.interchange import to_lines

    return (clean_json(line.decode()) for line in to_lines(history.records()))


def csv_lines(history: History) -> Iterator[Clean]:
    """Yield one line a point. A text that a spreadsheet would compute gets an apostrophe."""
    from perfci.report.table import spreadsheet_cell

    yield clean_lines(",".join(_COLUMNS) + "\n")
    for run in history.read():
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        for point in run.points:
            cells = (
                run.environment.key,
                point.case,
                point.metric,
                point.unit,
                point.direction,
                point.value,
                len(point.values),
                run.sha,
                run.subject,
                run.branch,
                run.committed_at,
                run.measured_at,
                run.position,
                run.runner,
                run.source,
                run.id,
            )
            writer.writerow(spreadsheet_cell(cell) for cell in cells)
        yield clean_lines(out.getvalue())


def deliver(lines: Iterable[Clean], file: Path | None) -> None:
    """Write to ``file``, whole or not at all, or to standard output."""
    if file is None:
        show_all(lines)
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_lines(file, (line.encode("utf-8", "replace") for line in lines))
    except OSError as error:
        raise unwritable(file, error) from error
