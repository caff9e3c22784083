"""Whole runs: written in one transaction, read back, removed; and a whole history in arrays."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, Select, delete, select, union

from perfci.errors import UsageError
from perfci.history import schema
from perfci.history.database import insert_into, insert_rows
from perfci.history.schema import (
    NotPacked,
    count_points,
    pack,
    pack_points,
    unpacked,
    unpacked_points,
)
from perfci.model.case import Direction
from perfci.model.run import HEADER, Environment, Point, RecordedRun, RunHeader, header_fields
from perfci.trend.series import LoadedHistory, LoadedRun, LoadedSeries, SeriesKey
from perfci.units import NoTime, from_text

_MOST_COMMITS = 2**31
"""A database's integer goes as far."""


class _Name(NamedTuple):
    """What identifies a series within its environment."""

    case: str
    metric: str
    unit: str
    direction: str


def record_runs(connection: Connection, runs: Iterable[RecordedRun]) -> int:
    """Write those of ``runs`` whose ids aren't there yet, and return how many."""
    known: _Known = {}
    return sum(_record(connection, run, known) for run in runs)


def require_recordable(run: RecordedRun) -> None:
    """Raise UsageError for a run that could not be read back as it is."""
    names = [_name(point) for point in run.points]
    if not run.id or not run.measured_at or not run.environment.key:
        raise _unrecordable(run, "it has no id, no environment or no time")
    try:
        from_text(run.measured_at)
    except NoTime as error:
        why = f"{run.measured_at[:80]!r} is no time at which it was measured"
        raise _unrecordable(run, why) from error
    if run.position is not None and not 0 <= run.position < _MOST_COMMITS:
        raise _unrecordable(run, f"no branch has {run.position} commits")
    if len({(name.case, name.metric) for name in names}) < len(names):
        raise _unrecordable(run, "a metric of a case is there twice")
    for point in run.points:
        if not (math.isfinite(point.value) and all(map(math.isfinite, point.values))):
            raise _unrecordable(run, f"{point.case} {point.metric} is not a finite number")
    for text in {*_texts(run), *(text for name in set(names) for text in name)}:
        if "\0" in text or (not text.isascii() and _is_broken(text)):
            raise _unrecordable(run, f"{text[:80]!r} is not text that a database takes")


_Known = dict[int, dict[_Name, int]]
"""By environment: the numbers of its series, as far as they were asked for."""


def _record(connection: Connection, run: RecordedRun, known: _Known) -> bool:
    if connection.execute(select(schema.runs.c.number).filter_by(id=run.id)).first():
        return False
    environment = _environment_number(connection, run.environment.key)
    facts, source_hashes, failed = _document_numbers(
        connection, (run.environment.facts, run.source_hashes, run.failed)
    )
    number = connection.execute(
        insert_into(connection, schema.runs)
        .values(
            **header_fields(run),
            environment=environment,
            facts=facts,
            source_hashes=source_hashes,
            failed=failed,
        )
        .on_conflict_do_nothing(index_elements=["id"])
        .returning(schema.runs.c.number)
    ).scalar()
    if number is None:  # another writer committed it since we looked
        return False
    names = [_name(point) for point in run.points]
    numbers = _series_numbers(connection, environment, set(names), known)
    places = [numbers[name] for name in names]
    placed = sorted(zip(places, run.points, strict=True), key=lambda pair: pair[0])
    if placed:
        content = pack_points([at for at, _ in placed], [point.value for _, point in placed])
        insert_rows(connection, schema.run_points, [(number, content)])
    packed = [(number, at, pack(point.values)) for at, point in placed if point.values]
    insert_rows(connection, schema.worker_values, packed)
    return True


def _name(point: Point) -> _Name:
    return _Name(point.case, point.metric, point.unit, point.direction)


def _environment_number(connection: Connection, key: str) -> int:
    table = schema.environments
    known = select(table.c.number).filter_by(key=key)
    found = connection.execute(known).scalar()
    if found is None:
        connection.execute(
            insert_into(connection, table)
            .values(key=key)
            .on_conflict_do_nothing(index_elements=["key"])
        )
        found = connection.execute(known).scalar_one()
    return int(found)


def _document_numbers(
    connection: Connection, contents: Sequence[Mapping[str, str]]
) -> tuple[int, ...]:
    texts = [json.dumps(dict(sorted(one.items())), separators=(",", ":")) for one in contents]
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    table = schema.documents
    wanted = select(table.c.digest, table.c.number).where(table.c.digest.in_(digests))
    known = {row.digest: row.number for row in connection.execute(wanted)}
    by_digest = dict(zip(digests, texts, strict=True))
    if missing := sorted(by_digest.keys() - known.keys()):
        connection.execute(
            insert_into(connection, table).on_conflict_do_nothing(index_elements=["digest"]),
            [{"digest": digest, "content": by_digest[digest]} for digest in missing],
        )
        known = {row.digest: row.number for row in connection.execute(wanted)}
    return tuple(known[digest] for digest in digests)


def _series_numbers(
    connection: Connection, environment: int, wanted: set[_Name], known: _Known
) -> dict[_Name, int]:
    if environment not in known or wanted - known[environment].keys():
        known[environment] = _known_series(connection, environment)
    # sorted: two writers that add the same series in two orders would wait for each other
    if missing := sorted(wanted - known[environment].keys()):
        rows = [{"environment": environment, **name._asdict()} for name in missing]
        connection.execute(insert_into(connection, schema.series).on_conflict_do_nothing(), rows)
        known[environment] = _known_series(connection, environment)
    return known[environment]


def _known_series(connection: Connection, environment: int) -> dict[_Name, int]:
    columns = schema.series.c
    rows = connection.execute(
        select(
            columns.number, columns.case, columns.metric, columns.unit, columns.direction
        ).filter_by(environment=environment)
    )
    return {_Name(*name): number for number, *name in rows}


def _texts(run: RecordedRun) -> Iterable[str]:
    yield from (run.id, run.source, run.sha, run.subject, run.branch, run.committed_at)
    yield from (run.measured_at, run.environment.key, run.runner)


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _unrecordable(run: RecordedRun, why: str) -> UsageError:
    return UsageError(
        "unrecordable-run",
        f"the run {run.id[:12]!r} of {run.sha[:12]!r} ({run.source}) can't be recorded: {why}",
        "Nothing of it was recorded.",
    )


# Reading runs back.
def runs_query() -> Select[Any]:
    """Select runs with their environment's key, as they were measured."""
    return (
        select(
            schema.runs.c.number,
            schema.environments.c.key,
            *(schema.runs.c[name] for name in HEADER),
        )
        .join(schema.environments, schema.runs.c.environment == schema.environments.c.number)
        .order_by(*schema.AS_MEASURED)
    )


def header_of(row: Row[Any]) -> RunHeader:
    """Return a row of ``runs_query`` as a run."""
    return RunHeader(**header_fields(row))


def read_runs(connection: Connection) -> Iterator[RecordedRun]:
    """Yield every run whole, one after the other: all at once may not fit into memory."""
    runs = schema.runs.c
    query = runs_query().add_columns(runs.facts, runs.source_hashes, runs.failed)
    known: dict[int, _Name] = {}
    for row in connection.execute(query).all():
        yield _whole(connection, row, known)


def _whole(connection: Connection, row: Row[Any], known: dict[int, _Name]) -> RecordedRun:
    """Return a run; ``known`` are the names of series, renewed where a number is not among them."""
    values_of = schema.worker_values.c
    found = select(values_of.series, values_of.packed).filter_by(run=row.number)
    workers = {one.series: one.packed for one in connection.execute(found)}
    series, values = points_of(connection, row.number)
    if not known.keys() >= set(series):
        known.update(_names_of_series(connection))
        if not known.keys() >= set(series):
            raise NotPacked("a run has points of a series that is not there")
    return RecordedRun(
        **header_fields(row),
        environment=Environment(row.key, _document(connection, row.facts)),
        points=tuple(
            _point(known[at], value, unpacked(workers[at]) if at in workers else ())
            for at, value in zip(series, values, strict=True)
        ),
        source_hashes=_document(connection, row.source_hashes),
        failed=_document(connection, row.failed),
    )


def points_of(connection: Connection, run: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the numbers of a run's series, and their values."""
    found = select(schema.run_points.c.packed).filter_by(run=run)
    return unpacked_points(connection.execute(found).scalar() or b"")


def _names_of_series(connection: Connection) -> dict[int, _Name]:
    columns = schema.series.c
    rows = connection.execute(
        select(columns.number, columns.case, columns.metric, columns.unit, columns.direction)
    )
    return {number: _Name(*name) for number, *name in rows}


def _point(name: _Name, value: float, workers: tuple[float, ...]) -> Point:
    case, metric, unit, direction = name
    return Point(case, metric, unit, value, workers, cast("Direction", direction))


def _document(connection: Connection, number: int) -> dict[str, str]:
    content = connection.execute(
        select(schema.documents.c.content).filter_by(number=number)
    ).scalar_one()
    return dict(json.loads(content))


# Removing runs, with what only they needed.
def remove_runs(connection: Connection, run_ids: Collection[str]) -> int:
    """Remove the runs, their points and the documents that no run refers to any more.

    Environments and series stay: a series without points is a name, and may get points again.
    """
    runs, documents = schema.runs, schema.documents
    numbers = [
        number
        for run in run_ids
        for number in connection.execute(select(runs.c.number).filter_by(id=run)).scalars()
    ]
    for number in numbers:
        for table in (schema.run_points, schema.worker_values):
            connection.execute(delete(table).where(table.c.run == number))
        connection.execute(delete(runs).where(runs.c.number == number))
    used = union(
        *(select(column) for column in (runs.c.facts, runs.c.source_hashes, runs.c.failed))
    )
    connection.execute(delete(documents).where(documents.c.number.not_in(used)))
    return len(numbers)


def load_history(connection: Connection) -> LoadedHistory:
    """Return every run, and every series with its values."""
    rows = connection.execute(
        runs_query().add_columns(schema.runs.c.facts, schema.runs.c.source_hashes)
    ).all()
    documents = {
        number: json.loads(content)
        for number, content in connection.execute(
            select(schema.documents.c.number, schema.documents.c.content).where(
                schema.documents.c.number.in_(
                    select(schema.runs.c.facts).union(select(schema.runs.c.source_hashes))
                )
            )
        )
    }
    facts = {row.key: documents[row.facts] for row in rows}  # an environment's newest run's
    indices = np.full(max((row.number for row in rows), default=0) + 1, -1, dtype=np.int32)
    for index, row in enumerate(rows):
        indices[row.number] = index
    return LoadedHistory(
        environments=facts,
        runs=tuple(LoadedRun(row.key, header_of(row)) for row in rows),
        series=tuple(_series(connection, indices)),
        sources=_Sources([row.source_hashes for row in rows], documents, set(facts)),
    )


def _series(connection: Connection, indices: NDArray[Any]) -> Iterator[LoadedSeries]:
    """Yield each series: a slice of all points, sorted by series, without a copy.

    A run has a series once, so that each run's points go to the next free place of their series:
    sorting all points would need their size again, and twice the time.
    """
    wanted = select(schema.series, schema.environments.c.key).join(schema.environments)
    rows = connection.execute(wanted).all()
    packed = _packed(connection, indices)
    numbers = [row.number for row in rows]
    free = np.zeros(max(numbers, default=0) + 2, dtype=np.intp)
    for of_run, _, _ in packed:
        if not np.isin(of_run, numbers, kind="table").all():
            raise NotPacked("a run has points of a series that is not there")
        free[of_run + 1] += 1
    np.cumsum(free, out=free)
    begins = free.copy()
    runs, values = np.empty(begins[-1], dtype=np.int32), np.empty(begins[-1])
    for of_run, of_values, run in packed:
        places = free[of_run]
        runs[places], values[places] = run, of_values
        free[of_run] += 1
    for row in rows:
        at = slice(begins[row.number], begins[row.number + 1])
        if at.start < at.stop:
            yield LoadedSeries(
                key=SeriesKey(row.key, row.case, row.metric),
                unit=row.unit,
                direction=row.direction,
                runs=runs[at],
                values=values[at],
            )


def _packed(
    connection: Connection, indices: NDArray[Any]
) -> list[tuple[NDArray[Any], NDArray[Any], int]]:
    """Return each run's series and values, as the database holds them, and its index."""
    points = schema.run_points.c
    found = []
    query = select(points.run, points.packed)
    for run, content in connection.execution_options(yield_per=20).execute(query):
        count = count_points(content)
        series = np.frombuffer(content, "<i4", count)
        values = np.frombuffer(content, "<f8", count, offset=4 * count)
        if run < len(indices) and indices[run] >= 0:
            found.append((series, values, int(indices[run])))
    return found


class _Sources(Mapping[tuple[str, str], Any]):
    """For each (environment, case) the version of the benchmark's source that each run had.

    Versions are numbered in the order of their hashes' first use; an array is made when asked for.

    Made at once, the arrays of all cases would need more memory than the points.
    """

    def __init__(
        self, of_run: list[int], documents: Mapping[int, Mapping[str, str]], keys: set[str]
    ) -> None:
        used = sorted(set(of_run))
        place = {number: index for index, number in enumerate(used)}
        self._map_of_run = np.array([place[number] for number in of_run], dtype=np.int32)
        self._maps = [documents[number] for number in used]
        names: dict[str, int] = {}
        for one in self._maps:
            for value in one.values():
                names.setdefault(value, len(names))
        self._numbers = names
        self._cases = set().union(*self._maps)
        self._environments = keys

    def __getitem__(self, key: tuple[str, str]) -> NDArray[Any]:
        environment, case = key
        if environment not in self._environments or case not in self._cases:
            raise KeyError(key)
        hashes = (one.get(case) for one in self._maps)
        known = [-1 if value is None else self._numbers[value] for value in hashes]
        return np.array(known, dtype=np.int32)[self._map_of_run]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((key, case) for key in sorted(self._environments) for case in sorted(self._cases))

    def __len__(self) -> int:
        return len(self._environments) * len(self._cases)
