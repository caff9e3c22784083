"""A whole history at once, in arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from perfci.history import schema
from perfci.history.packing import NotPacked, count_points
from perfci.history.runs import header_of, runs_query
from perfci.trend.timeline.series import (
    LoadedHistory,
    LoadedRun,
    LoadedSeries,
    SeriesKey,
)


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
