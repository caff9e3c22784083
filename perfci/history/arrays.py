"""A whole history at once, in arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, literal, select

from perfci.history import schema
from perfci.history.runs import header_of, runs_query
from perfci.trend.timeline.series import (
    LoadedHistory,
    LoadedRun,
    LoadedSeries,
    SeriesKey,
)


@dataclass(frozen=True, slots=True)
class Columns:
    """Points in no order: the numbers of run and series (n,) int32, ``value`` (n,) float64."""

    run: NDArray[Any]
    series: NDArray[Any]
    value: NDArray[Any]


def read_points(connection: Connection) -> Columns:
    """Return all points."""
    if connection.dialect.name == "postgresql":
        return _from_postgresql(connection)
    return _from_sqlite(connection)


def _from_sqlite(connection: Connection) -> Columns:
    """Rows go from the driver's cursor into an array, and never become a list of tuples."""
    points = schema.points
    query = select(points.c.run, points.c.series, points.c.value).compile(connection)
    rows = connection.connection.cursor().execute(str(query))
    kinds = [("run", "i4"), ("series", "i4"), ("value", "f8")]
    found = np.fromiter(rows, dtype=np.dtype(kinds))
    return Columns(found["run"], found["series"], found["value"])


def _from_postgresql(connection: Connection) -> Columns:
    """One row a run, its points as bytes: a row for each point would be 20 times slower to read."""
    points = schema.points
    one = func.int4send(points.c.series).op("||")(func.float8send(points.c.value))
    query = select(points.c.run, func.string_agg(one, literal(b""))).group_by(points.c.run)
    kind = np.dtype([("series", ">i4"), ("value", ">f8")])
    runs, series, values = [], [], []
    for run, packed in connection.execution_options(yield_per=20).execute(query):
        found = np.frombuffer(packed, dtype=kind)
        runs.append(np.full(len(found), run, dtype=np.int32))
        series.append(found["series"].astype(np.int32))
        values.append(found["value"].astype(np.float64))
    if not runs:
        return Columns(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    return Columns(np.concatenate(runs), np.concatenate(series), np.concatenate(values))


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
    """Sort all points by series; each series is then a slice of them, without a copy."""
    wanted = select(schema.series, schema.environments.c.key).join(schema.environments)
    points = read_points(connection)
    by_series = np.argsort(points.series, kind="stable")
    runs = indices[points.run[by_series]]
    values = points.value[by_series]
    counts = np.bincount(points.series)
    ends = np.cumsum(counts)
    del points, by_series
    for row in connection.execute(wanted):
        if row.number >= len(counts) or not counts[row.number]:
            continue
        at = slice(ends[row.number] - counts[row.number], ends[row.number])
        yield LoadedSeries(
            key=SeriesKey(row.key, row.case, row.metric),
            unit=row.unit,
            direction=row.direction,
            runs=runs[at],
            values=values[at],
        )


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
