"""Exports of a history, and imports: of exports, other histories and other tools' results.

An export is JSON lines. Each line is one object: a header, then runs and changes, then
their number, so that a file cut short is noticed. The text doesn't depend on the time of writing.
The same history gives the same text, and a new run adds lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from perfci.errors import DamagedFile, UsageError
from perfci.files import read_regular, reading
from perfci.history.importers import ForeignResults, SkippedResult, foreign_parts, read_foreign
from perfci.history.runs import require_recordable
from perfci.history.store import OpenHistory, open_history
from perfci.model.run import RecordedRun
from perfci.trend import KnownChange, benchmark_of
from perfci.units import counted

SCHEMA = "perfci.history/1"
BEGINNING = b'{"type":"perfci.history/'
"""The first bytes of an export, of any version."""
_SQLITE = b"SQLite format 3\0"
_CHECK = "Check the path and its rights."
_REASONS_SHOWN = 20
"""Lines on what was left out. The others are counted."""
_RECORDS_AT_ONCE = 20
"""Records in a transaction: waiting for the disk takes longer than writing one."""
Record = RecordedRun | KnownChange


class _Header(msgspec.Struct, tag=SCHEMA, tag_field="type", forbid_unknown_fields=True):
    pass


class _End(msgspec.Struct, tag="end", tag_field="type", forbid_unknown_fields=True):
    records: int


class _Run(msgspec.Struct, tag="run", tag_field="type", forbid_unknown_fields=True):
    record: RecordedRun


class _Change(msgspec.Struct, tag="change", tag_field="type", forbid_unknown_fields=True):
    record: KnownChange


def to_lines(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the lines of an export, each with its newline."""
    encoder = msgspec.json.Encoder(order="deterministic")
    yield encoder.encode(_Header()) + b"\n"
    count = 0
    for record in records:
        line: _Run | _Change
        if isinstance(record, RecordedRun):
            line = _Run(replace(record, points=tuple(sorted(record.points))))
        else:
            line = _Change(record)
        yield encoder.encode(line) + b"\n"
        count += 1
    yield encoder.encode(_End(count)) + b"\n"


def from_lines(lines: Iterable[bytes], name: str) -> Iterator[Record]:
    """Yield the records that ``to_lines`` wrote.

    Raises DamagedFile, which names the line, for a damaged line and at the end of a file that was
    cut short. Raises UsageError for a newer perfci's export.
    """
    decoder = msgspec.json.Decoder(_Header | _End | _Run | _Change)
    number, ended = 0, False
    for number, text in enumerate(lines, 1):
        try:
            line = decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if text.startswith(BEGINNING) and SCHEMA.encode() not in text:
                raise UsageError(
                    "other-schema",
                    f"{name} was written by a newer perfci",
                    f"Update perfci; this one reads {SCHEMA}.",
                ) from error
            raise _damaged(name, number, str(error)) from error
        if isinstance(line, _Header) != (number == 1) or ended:
            raise _damaged(
                name, number, "the header is not the first line, or the end not the last"
            )
        if isinstance(line, _End):
            ended = True
            if line.records != number - 2:
                counts = f"{line.records} records were written, {number - 2} are here"
                raise _damaged(name, number, counts)
        elif not isinstance(line, _Header):
            yield line.record
    if not ended:
        raise _damaged(name, number, "it ends before its end: it was cut short")


def _damaged(name: str, number: int, why: str) -> DamagedFile:
    return DamagedFile(
        "damaged-file",
        f"{name} is damaged in line {number}: {why}",
        "Export it again. The lines before that one were imported, and importing them again adds "
        "nothing.",
    )


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """The result of an import in one line, and lines on what was left out or assumed."""

    summary: str
    details: tuple[str, ...] = ()


def importer(path: Path) -> Callable[[OpenHistory], ImportSummary]:
    """Return a function that adds the content of ``path`` to a history.

    Raises PerfciError if the path can't be read or holds nothing to import: it does so before a
    history is opened, because opening creates one. For damage further in, the returned function
    raises.
    """
    if path.is_dir():
        return partial(_import_foreign, parts=_folder_parts(path))
    with reading(path, _CHECK):
        form = form_of(path)
        if form:
            return partial(add_records, records=_stored_records(path, form))
        content = read_regular(path)
    return partial(_import_foreign, parts=iter([read_foreign(content, path.name)]))


def form_of(path: Path) -> str:
    """Return ``sqlite`` or ``export`` for a history's file, else "". OSError if unreadable."""
    if not path.is_file():  # opening a pipe would wait for its writer; stat() raises if missing
        path.stat()
        raise OSError(None, "not a regular file", str(path))
    with path.open("rb") as file:
        beginning = file.read(len(BEGINNING))
    if beginning.startswith(_SQLITE):
        return "sqlite"
    return "export" if beginning == BEGINNING else ""


def _stored_records(path: Path, form: str) -> Iterator[Record]:
    if form == "sqlite":
        with open_history(str(path), create=False) as history:
            yield from history.export()
    else:
        with path.open("rb") as lines:
            yield from from_lines(lines, str(path))


def _import_foreign(history: OpenHistory, parts: Iterator[ForeignResults]) -> ImportSummary:
    """Add another tool's runs, which a file holds, or each file of a folder in turn."""
    tools: set[str] = set()
    notes: dict[str, None] = {}
    left_out: list[SkippedResult] = []

    def runs() -> Iterator[RecordedRun]:
        for part in parts:
            tools.update(filter(None, (part.tool,)))
            notes.update(dict.fromkeys(part.notes))
            left_out.extend(part.skipped)
            for run in part.runs:
                if run.measured_at:
                    yield run
                else:
                    left_out.append(SkippedResult("a run", "it doesn't say when it was measured"))

    added = add_records(history, runs())
    what = f"{tools.pop()}, " if len(tools) == 1 else ""
    return ImportSummary(what + added.summary, (*notes, *_lines(left_out)))


def _lines(left_out: Iterable[SkippedResult]) -> Iterator[str]:
    """Yield lines on what was left out, by benchmark and reason, over all of its cases."""
    counts = Counter((benchmark_of(each.what), each.why) for each in left_out)
    for (what, why), count in islice(counts.items(), _REASONS_SHOWN):
        yield f"left out {what}{f', {count:,} times' if count > 1 else ''}: {why}"
    if rest := sum(islice(counts.values(), _REASONS_SHOWN, None)):
        yield f"… and {rest:,} more left out"


def add_records(history: OpenHistory, records: Iterable[Record]) -> ImportSummary:
    """Add records in batches, because the records of a whole history may not fit into memory.

    If reading a record fails, the records before it are added first, and then the error is raised.
    """
    runs = new = 0
    batch: list[Record] = []

    def write() -> None:
        nonlocal runs, new
        of_batch = [record for record in batch if isinstance(record, RecordedRun)]
        runs += len(of_batch)
        new += history.record(of_batch)
        history.remember([record for record in batch if isinstance(record, KnownChange)])
        batch.clear()

    try:
        for record in records:
            if isinstance(record, RecordedRun):
                require_recordable(record)
            batch.append(record)
            if len(batch) == _RECORDS_AT_ONCE:
                write()
    finally:
        write()
    old = runs - new
    known = f", {old} {'was' if old == 1 else 'were'} there already" if old else ""
    return ImportSummary(f"{counted(new, 'new run')}{known}")


def _folder_parts(path: Path) -> Iterator[ForeignResults]:
    """Yield the results of one file at a time: years of asv's results are hundreds of megabytes."""

    def content_of(name: str) -> bytes:
        with reading(path / name, _CHECK):
            return read_regular(path / name)

    names = [file.relative_to(path).as_posix() for file in path.rglob("*.json")]
    if not names:
        raise UsageError(
            "nothing-to-import",
            f"{path} holds no .json file",
            "Name the folder of results, such as asv's .asv/results.",
        )
    yield from foreign_parts(names, content_of, path.name)
