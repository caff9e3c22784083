"""Writing an export: to a file that is there whole or not at all, or to standard output."""

from __future__ import annotations

import csv
import io
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.cli.output import unwritable
from perfci.writing import require_file

if TYPE_CHECKING:
    from perfci.store.history.history import History

_COLUMNS = (
    "environment", "case", "metric", "unit", "direction", "value", "workers", "sha", "subject",
    "branch", "committed_at", "measured_at", "position", "runner", "source", "run",
)  # fmt: skip


def json_lines(history: History) -> Iterator[bytes]:
    """Yield everything as lines that ``history import`` reads back."""
    from perfci.store.history.interchange import to_lines

    return to_lines(history.records())


def csv_lines(history: History) -> Iterator[bytes]:
    """Yield one line a point. A text that a spreadsheet would compute gets an apostrophe."""
    from perfci.report.table import spreadsheet_cell

    yield ",".join(_COLUMNS).encode() + b"\n"
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
        yield out.getvalue().encode("utf-8", "replace")


def write_lines(lines: Iterable[bytes], file: Path | None) -> None:
    """Write to ``file``, replaced whole at the end, or to standard output.

    A device (``/dev/null``) is written to as it stands, and where a link leads is replaced.
    """
    if file is None:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        require_file(file)
        if file.exists() and not file.is_file():
            with file.open("wb") as device:
                device.writelines(lines)
            return
        file = Path(os.path.realpath(file))
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    except OSError as error:
        raise unwritable(file, error) from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.writelines(lines)
        temporary.chmod(0o644)  # mkstemp's 0600 would keep other users of a runner out
        temporary.replace(file)
    except OSError as error:
        raise unwritable(file, error) from error
    finally:
        temporary.unlink(missing_ok=True)
