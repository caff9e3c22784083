"""A history as text: JSON lines, which an import reads back unchanged.

Each line is one object: a header, then runs, outcomes and changes, then their number, so that a
file cut short is noticed. The text doesn't depend on the time of writing. The same history gives
the same text, and a new run adds lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from perfci.errors import DamagedFile, PerfciError, UnrecordableRun, UsageError
from perfci.files import write_lines
from perfci.model.case import Direction
from perfci.model.run import Environment, GateOutcome, Point, RecordedRun, header_fields
from perfci.trend import KnownChange

SCHEMA = "perfci.history/1"
BEGINNING = b'{"type":"perfci.history/'
"""The first bytes of an export, of any version."""
FOLDER = "unrecorded"
"""Folder, in the cache folder, of runs that a failing history did not take."""
Record = RecordedRun | GateOutcome | KnownChange


class _Header(msgspec.Struct, tag=SCHEMA, tag_field="type", forbid_unknown_fields=True):
    pass


class _End(msgspec.Struct, tag="end", tag_field="type", forbid_unknown_fields=True):
    records: int


class _Run(msgspec.Struct, tag="run", tag_field="type", forbid_unknown_fields=True):
    id: str
    source: str
    sha: str
    subject: str
    branch: str
    committed_at: str
    measured_at: str
    position: int | None
    runner: str
    environment: str
    facts: dict[str, str]
    source_hashes: dict[str, str]
    failed: dict[str, str]
    points: list[tuple[str, str, str, Direction, float]]


class _Outcome(msgspec.Struct, tag="outcome", tag_field="type", forbid_unknown_fields=True):
    outcome: GateOutcome


class _Change(msgspec.Struct, tag="change", tag_field="type", forbid_unknown_fields=True):
    change: KnownChange


_Line = _Header | _End | _Run | _Outcome | _Change


def to_lines(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the lines of an export, each with its newline."""
    encoder = msgspec.json.Encoder()
    yield encoder.encode(_Header()) + b"\n"
    count = 0
    for record in records:
        yield encoder.encode(_line(record)) + b"\n"
        count += 1
    yield encoder.encode(_End(count)) + b"\n"


def from_lines(lines: Iterable[bytes], name: str) -> Iterator[Record]:
    """Yield the records that ``to_lines`` wrote. Several exports in a row are read as one.

    Raises DamagedFile, which names the line, for a damaged line and at the end of a file that was
    cut short. Raises UsageError for a newer perfci's export.
    """
    decoder: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line)
    counted: int | None = None  # None outside an export
    number = 0
    for number, text in enumerate(lines, 1):
        try:
            line = decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _unreadable(text, name, number, error) from error
        if isinstance(line, _Header) and counted is None:
            counted = 0
        elif isinstance(line, _Header):
            raise _damaged(name, number, "an export begins before the last has ended")
        elif counted is None:
            raise _damaged(name, number, "there is no header before this line")
        elif isinstance(line, _End):
            if line.records != counted:
                raise _damaged(
                    name, number, f"{line.records} records were written, {counted} are here"
                )
            counted = None
        else:
            counted += 1
            yield _record(line)
    if counted is not None or number == 0:
        raise _damaged(name, number, "it ends before its end: it was cut short")


def _line(record: Record) -> _Run | _Outcome | _Change:
    if isinstance(record, GateOutcome):
        return _Outcome(record)
    if isinstance(record, KnownChange):
        return _Change(record)
    points = sorted(record.points, key=lambda point: (point.case, point.metric))
    return _Run(
        **header_fields(record),
        environment=record.environment.key,
        facts=dict(sorted(record.environment.facts.items())),
        source_hashes=dict(sorted(record.source_hashes.items())),
        failed=dict(sorted(record.failed.items())),
        points=[(each.case, each.metric, each.unit, each.direction, each.value) for each in points],
    )


def _record(line: _Run | _Outcome | _Change) -> Record:
    if isinstance(line, _Outcome):
        return line.outcome
    if isinstance(line, _Change):
        return line.change
    return RecordedRun(
        **header_fields(line),
        environment=Environment(line.environment, line.facts),
        points=tuple(
            Point(case, metric, unit, value, direction)
            for case, metric, unit, direction, value in line.points
        ),
        source_hashes=line.source_hashes,
        failed=line.failed,
    )


def _unreadable(text: bytes, name: str, number: int, error: Exception) -> Exception:
    if (
        number == 1
        and text.startswith(BEGINNING)
        and not text.startswith(f'{{"type":"{SCHEMA}"'.encode())
    ):
        return UsageError(
            "newer-export",
            f"{name} was written by a newer perfci",
            f"Update perfci; this one reads {SCHEMA}.",
        )
    return _damaged(name, number, str(error))


def _damaged(name: str, number: int, why: str) -> DamagedFile:
    return DamagedFile(
        "damaged-export",
        f"{name} is damaged in line {number}: {why}",
        "Export it again. The lines before that one were imported, and importing them again adds "
        "nothing.",
    )


@contextmanager
def keeping(records: Sequence[RecordedRun | GateOutcome], cache: Path) -> Iterator[None]:
    """Write ``records`` below ``cache`` if the block can't record them. The error says where.

    They are also written if the server refuses the user (a password may change during a
    measurement), but not if no history would take the run. If ``cache`` can't be written either,
    the error says so.
    """
    try:
        yield
    except PerfciError as error:
        if isinstance(error, UnrecordableRun) or not records:
            raise
        try:
            kept = _written(records, cache / FOLDER)
        except OSError as unwritable:
            raise error.reworded(
                f"{error.message}. What was measured is in no history",
                f"{cache / FOLDER} can't keep it either: {unwritable.strerror or unwritable}.\n"
                f"{error.advice}",
            ) from error
        raise error.reworded(
            error.message,
            f"What was measured is in {kept}. Once the history is well again: "
            f"perfci history import {kept}\n{error.advice}",
        ) from error


def _written(records: Sequence[RecordedRun | GateOutcome], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{records[0].id}.jsonl"
    write_lines(kept, to_lines(records))
    return kept
