"""A history as lines of an export: JSON that ``history import`` reads back, or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.app.outputs import unwritable
from perfci.files import write_lines
from perfci.render.clean import Clean, clean_json, clean_lines

if TYPE_CHECKING:
    from perfci.history.history import OpenHistory

_COLUMNS = (
    "environment", "case", "metric", "unit", "direction", "value", "workers", "sha", "subject",
    "branch", "committed_at", "measured_at", "position", "runner", "source", "run",
)  # fmt: skip


CSV_BEGINNING = ",".join(_COLUMNS[:4]).encode()
"""How an export as CSV begins: ``history import`` refuses it by name."""


def json_lines(history: OpenHistory) -> Iterator[Clean]:
    """Yield everything as lines that ``history import`` reads back."""
    from perfci.history.interchange import to_lines

    return (clean_json(line.decode()) for line in to_lines(history.records()))


def csv_lines(history: OpenHistory) -> Iterator[Clean]:
    """Yield one line a point. A text that a spreadsheet would compute gets an apostrophe."""
    from perfci.render.exporters.csv import spreadsheet_cell

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


def write_export(lines: Iterable[Clean], file: Path) -> None:
    """Write an export to ``file``, whole or not at all. OutsideError where it can't be."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_lines(file, (line.encode("utf-8", "replace") for line in lines))
    except OSError as error:
        raise unwritable(file, error) from error
