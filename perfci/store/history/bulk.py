"""Millions of points out of the database, by the quickest way that each one has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.store.history import schema

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sqlalchemy import Connection


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
    import numpy as np
    from sqlalchemy import select

    points = schema.points
    query = select(points.c.run, points.c.series, points.c.value).compile(connection)
    rows = connection.connection.cursor().execute(str(query))
    kinds = [("run", "i4"), ("series", "i4"), ("value", "f8")]
    found = np.fromiter(rows, dtype=np.dtype(kinds))
    return Columns(found["run"], found["series"], found["value"])


def _from_postgresql(connection: Connection) -> Columns:
    """One row a run, its points as bytes: a row for each point would be 20 times slower to read."""
    import numpy as np
    from sqlalchemy import func, literal, select

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
