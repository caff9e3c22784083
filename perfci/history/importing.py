"""Imports into a history: exports, other histories, and result files of other tools."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.errors import OutsideError, PerfciError, UsageError
from perfci.files import read_regular
from perfci.history.importers import foreign_parts, read_foreign
from perfci.history.interchange import BEGINNING, from_lines
from perfci.history.runs import require_recordable
from perfci.history.store import OpenHistory, open_history
from perfci.model.run import GateOutcome, RecordedRun
from perfci.trend import KnownChange, benchmark_of
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.history.foreign import ForeignResults, SkippedResult
    from perfci.history.interchange import Record

_SQLITE = b"SQLite format 3\0"
_REASONS_SHOWN = 20
"""Lines on what was left out. The others are counted."""
_RECORDS_AT_ONCE = 20
"""Records that are read, then written, at a time."""
_DEEPEST = 3
"""Levels of folders that are searched. asv's results lie one level down, .benchmarks' two."""
_HIDDEN_RESULTS = {".asv", ".benchmarks"}
"""Folders that are searched although their names begin with a dot."""


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
    try:
        form = form_of(path)
        if form:
            return partial(_import_sqlite if form == "sqlite" else _import_export, path=path)
        content = read_regular(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    return partial(_import_foreign, parts=iter([read_foreign(content, path.name)]))


def form_of(path: Path) -> str:
    """Return ``sqlite`` or ``export`` for a history's file, else "". OSError if unreadable."""
    if not path.is_file():  # opening a pipe would wait for its writer; stat() raises if missing
        path.stat()
        raise OSError(None, "it is no regular file", str(path))
    with path.open("rb") as file:
        beginning = file.read(len(BEGINNING))
    if beginning.startswith(_SQLITE):
        return "sqlite"
    return "export" if beginning == BEGINNING else ""


def _import_export(history: OpenHistory, path: Path) -> ImportSummary:
    with path.open("rb") as lines:
        return add_records(history, from_lines(lines, str(path)))


def _import_sqlite(history: OpenHistory, path: Path) -> ImportSummary:
    with open_history(str(path), create=False) as other:
        return add_records(history, other.export())


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
            yield from part.runs

    added = add_records(history, runs())
    what = f"{tools.pop()}, " if len(tools) == 1 else ""
    return ImportSummary(what + added.summary, (*notes, *_lines(left_out)))


def _lines(left_out: Iterable[SkippedResult]) -> tuple[str, ...]:
    """Return lines on what was left out, by benchmark and reason, over all of its cases."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for each in left_out:
        key = benchmark_of(each.what), each.why
        counts[key] += 1
        first.setdefault(key, each.what)
    shown = [
        f"left out {first[key] if count == 1 else f'{key[0]}, {count:,} times'}: {key[1]}"
        for key, count in islice(counts.items(), _REASONS_SHOWN)
    ]
    rest = sum(islice(counts.values(), _REASONS_SHOWN, None))
    return (*shown, *([f"… and {rest:,} more left out"] if rest else ()))


def add_records(history: OpenHistory, records: Iterable[Record]) -> ImportSummary:
    """Add records in batches, because the records of a whole history may not fit into memory.

    If reading a record fails, the records before it are added first, and then the error is raised.
    """
    runs = new = 0
    source = _recordable(records)
    trouble: PerfciError | None = None
    batch: list[Record] | None = None
    while batch != [] and trouble is None:
        batch = []
        try:
            batch.extend(islice(source, _RECORDS_AT_ONCE))  # keeps what came before an error
        except PerfciError as error:
            trouble = error
        batch_runs = [record for record in batch if isinstance(record, RecordedRun)]
        runs += len(batch_runs)
        new += history.record(batch_runs)
        for record in batch:
            if isinstance(record, GateOutcome):
                history.record_outcome(record)
        history.remember([record for record in batch if isinstance(record, KnownChange)])
    if trouble is not None:
        raise trouble
    old = runs - new
    known = f", {old} {'was' if old == 1 else 'were'} there already" if old else ""
    return ImportSummary(f"{counted(new, 'new run')}{known}")


def _recordable(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records. Raise at a run that no history takes: those before it are then added."""
    for record in records:
        if isinstance(record, RecordedRun):
            try:
                require_recordable(record)
            except UsageError as error:
                advice = "The runs before it were imported, and importing them again adds nothing."
                raise error.reworded(error.message, advice) from error
        yield record


def _folder_parts(path: Path) -> Iterator[ForeignResults]:
    """Yield the results of one file at a time: years of asv's results are hundreds of megabytes."""

    def content_of(name: str) -> bytes:
        try:
            return read_regular(path / name)
        except OSError as error:
            raise _unreadable(path / name, error) from error

    names = [file.relative_to(path).as_posix() for file in _result_files(path)]
    if not names:
        raise UsageError(
            "nothing-to-import",
            f"{path} holds no .json file within {_DEEPEST} folders",
            "Name the folder of results, such as asv's .asv/results.",
        )
    yield from foreign_parts(names, content_of, path.name)


def _result_files(path: Path) -> Iterator[Path]:
    """Yield the JSON files a few levels below ``path``, without hidden folders and node_modules.

    So a home or a checkout isn't searched as a whole. OutsideError for an unreadable folder.
    """

    def unreadable(error: OSError) -> None:
        raise _unreadable(Path(error.filename or path), error)

    for folder, below, files in os.walk(path, onerror=unreadable):
        here = Path(folder)
        deep = len(here.relative_to(path).parts) >= _DEEPEST
        below[:] = () if deep else sorted(name for name in below if _may_hold_results(name))
        yield from (here / name for name in files if name.endswith(".json"))


def _may_hold_results(folder: str) -> bool:
    return folder in _HIDDEN_RESULTS or not (folder.startswith(".") or folder == "node_modules")


def _unreadable(path: Path, error: OSError) -> OutsideError:
    return OutsideError(
        "unreadable", f"{path} can't be read: {error.strerror}", "Check the path and its rights."
    )
