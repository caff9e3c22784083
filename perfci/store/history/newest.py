"""The newest values of a few series: what a report shows beside what it just measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from perfci.store.history import schema
from perfci.trend.series import SeriesKey

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection


def read_newest(
    connection: Connection, names: Mapping[SeriesKey, Collection[str]], last: int, branch: str
) -> dict[SeriesKey, tuple[float, ...]]:
    """Return the values of each series in the newest ``last`` runs of ``branch``.

    The oldest first; a series that those runs lack is left out. ``names`` maps each to its case's
    earlier names: where a run has several, the case's own counts.
    """
    newest = {
        environment: _newest_runs(connection, environment, last, branch)
        for environment in {key.environment for key in names}
    }
    found = {
        key: _values(connection, key, earlier, newest[key.environment])
        for key, earlier in names.items()
    }
    return {key: values for key, values in found.items() if values}


def _newest_runs(
    connection: Connection, environment: str, last: int, branch: str
) -> tuple[int, ...]:
    from sqlalchemy import select

    runs, environments = schema.runs, schema.environments
    chosen = (
        select(runs.c.number)
        .join(environments, environments.c.number == runs.c.environment)
        .where(environments.c.key == environment, runs.c.branch == branch)
        .order_by(*(column.desc().nulls_last() for column in _order()))
        .limit(last)
    )
    return tuple(connection.execute(chosen).scalars())


def _values(
    connection: Connection,
    key: SeriesKey,
    earlier: Collection[str],
    run_numbers: tuple[int, ...],
) -> tuple[float, ...]:
    from sqlalchemy import select

    runs, series, points = schema.runs, schema.series, schema.points
    chosen = (
        select(points.c.run, points.c.value, series.c.case)
        .join(runs, runs.c.number == points.c.run)
        .join(series, series.c.number == points.c.series)
        .join(schema.environments, schema.environments.c.number == series.c.environment)
        .where(
            points.c.run.in_(run_numbers),
            schema.environments.c.key == key.environment,
            series.c.case.in_((key.case, *earlier)),
            series.c.metric == key.metric,
        )
        .order_by(*(column.nulls_first() for column in _order()))
    )
    by_run: dict[int, float] = {}
    for run, value, case in connection.execute(chosen):
        if run not in by_run or case == key.case:
            by_run[run] = value
    return tuple(by_run.values())


def _order() -> tuple[ColumnElement[Any], ...]:
    """By place in the history; of one commit, as measured."""
    return schema.runs.c.position, *schema.AS_MEASURED
