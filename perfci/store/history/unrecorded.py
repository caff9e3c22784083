"""What was measured and a failing history did not take: kept in a file, which can be imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from perfci.errors import PerfciError
from perfci.record.history import GateOutcome, RecordedRun
from perfci.store.history.interchange import to_lines
from perfci.writing import write_lines

FOLDER = "unrecorded"
"""The folder of these files, in the cache folder."""
_NEVER_TAKEN = "unrecordable-run"


@contextmanager
def keeping(records: Sequence[RecordedRun | GateOutcome], cache: Path) -> Iterator[None]:
    """Write ``records`` below ``cache`` where the block fails to record them; the error says so.

    Also where the server refuses: a password may be changed while something is measured. What no
    history would ever take is not kept.
    """
    try:
        yield
    except PerfciError as error:
        if error.slug == _NEVER_TAKEN or not records:
            raise
        kept = _written(records, cache / FOLDER)
        raise type(error)(
            error.slug,
            error.message,
            f"What was measured is in {kept}. Once the history is well again: "
            f"perfci history import {kept}\n{error.advice}",
        ) from error


def _written(records: Sequence[RecordedRun | GateOutcome], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{records[0].id}.jsonl"
    write_lines(kept, to_lines(records))
    return kept
