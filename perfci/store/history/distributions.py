"""The values of single workers, for those runs of which somebody wants to see the spread."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from perfci.store.history import schema
from perfci.trend.series import SeriesKey

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from perfci.trend.loaded import Distributions


def read_values(
    connection: Connection, key: SeriesKey, run_ids: Collection[str], earlier: Collection[str] = ()
) -> dict[str, tuple[float, ...]]:
    """Return the workers' values of one series in those of the runs that have any.

    ``earlier`` are other names of the case: where a run has several, the case's own counts.
    """
    from sqlalchemy import select

    runs, series, values = schema.runs, schema.series, schema.worker_values
    rows = connection.execute(
        select(runs.c.id, values.c.packed, series.c.case)
        .join(values, values.c.run == runs.c.number)
        .join(series, series.c.number == values.c.series)
        .join(schema.environments, schema.environments.c.number == series.c.environment)
        .where(
            runs.c.id.in_(run_ids),
            schema.environments.c.key == key.environment,
            series.c.case.in_((key.case, *earlier)),
            series.c.metric == key.metric,
        )
    )
    own_last = sorted(rows, key=lambda row: row.case == key.case)
    return {row.id: unpacked(row.packed) for row in own_last}


def read_distributions(connection: Connection, run_ids: Iterable[str]) -> Distributions:
    """Return the workers' values of all series in some runs."""
    from sqlalchemy import select

    runs, values = schema.runs, schema.worker_values
    keys = {
        number: SeriesKey(*name)
        for number, *name in connection.execute(
            select(
                schema.series.c.number,
                schema.environments.c.key,
                schema.series.c.case,
                schema.series.c.metric,
            ).join(schema.environments)
        )
    }
    found: dict[SeriesKey, dict[str, tuple[float, ...]]] = {}
    for run in run_ids:
        rows = connection.execute(
            select(values.c.series, values.c.packed)
            .join(runs, runs.c.number == values.c.run)
            .where(runs.c.id == run)
        )
        for series, packed in rows:
            found.setdefault(keys[series], {})[run] = unpacked(packed)
    return found


def unpacked(packed: bytes) -> tuple[float, ...]:
    """Return the numbers that ``recording.pack`` packed."""
    import sys

    values = array("d")
    values.frombytes(packed)
    if sys.byteorder == "big":
        values.byteswap()
    return tuple(values)
