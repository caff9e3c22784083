"""The values of single workers, for those runs of which somebody wants to see the spread."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from perfci.store.history import schema
from perfci.trend.series import SeriesKey

if TYPE_CHECKING:
    from sqlalchemy import Connection

Distributions = Mapping[SeriesKey, Mapping[str, tuple[float, ...]]]
"""By series, then by run id: one value for each worker."""


def read_values(
    connection: Connection, key: SeriesKey, run_ids: Collection[str]
) -> dict[str, tuple[float, ...]]:
    """Return the workers' values of one series in those of the runs that have any."""
    from sqlalchemy import select

    runs, series, values = schema.runs, schema.series, schema.worker_values
    rows = connection.execute(
        select(runs.c.id, values.c.packed)
        .join(values, values.c.run == runs.c.number)
        .join(series, series.c.number == values.c.series)
        .join(schema.environments, schema.environments.c.number == series.c.environment)
        .where(
            runs.c.id.in_(run_ids),
            schema.environments.c.key == key.environment,
            series.c.case == key.case,
            series.c.metric == key.metric,
        )
    )
    return {run: unpacked(packed) for run, packed in rows}


def read_distributions(connection: Connection, last: int) -> Distributions:
    """Return the workers' values of the newest ``last`` runs of each environment."""
    from sqlalchemy import func, select

    runs, values = schema.runs, schema.worker_values
    place = func.row_number().over(
        partition_by=runs.c.environment,
        order_by=[column.desc() for column in schema.AS_MEASURED],
    )
    ranked = select(runs.c.number, runs.c.id, place.label("place")).subquery()
    newest = connection.execute(
        select(ranked.c.number, ranked.c.id).where(ranked.c.place <= last)
    ).all()
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
    for number, run in newest:
        rows = connection.execute(select(values.c.series, values.c.packed).filter_by(run=number))
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
