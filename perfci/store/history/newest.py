"""The newest values of a few series: what a report shows beside what it just measured."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from perfci.store.history import schema
from perfci.trend.series import SeriesKey

if TYPE_CHECKING:
    from sqlalchemy import Connection


def read_newest(
    connection: Connection, keys: Collection[SeriesKey], last: int, branch: str
) -> dict[SeriesKey, tuple[float, ...]]:
    """Return the values of each of ``keys`` in the newest ``last`` runs of ``branch``.

    The oldest first; a series that those runs lack is left out.
    """
    from sqlalchemy import select

    runs, series, points = schema.runs, schema.series, schema.points
    found: dict[SeriesKey, tuple[float, ...]] = {}
    for environment in sorted({key.environment for key in keys}):
        newest = [
            number
            for (number,) in connection.execute(
                select(runs.c.number)
                .join(schema.environments, schema.environments.c.number == runs.c.environment)
                .where(schema.environments.c.key == environment, runs.c.branch == branch)
                .order_by(runs.c.position.desc(), runs.c.measured_at.desc(), runs.c.number.desc())
                .limit(last)
            )
        ]
        for key in (key for key in keys if key.environment == environment):
            values = {
                run: value
                for run, value in connection.execute(
                    select(points.c.run, points.c.value)
                    .join(series, series.c.number == points.c.series)
                    .join(schema.environments, schema.environments.c.number == series.c.environment)
                    .where(
                        points.c.run.in_(newest),
                        schema.environments.c.key == environment,
                        series.c.case == key.case,
                        series.c.metric == key.metric,
                    )
                )
            }
            if values:
                found[key] = tuple(values[run] for run in reversed(newest) if run in values)
    return found
