"""Reading runs back as they were recorded, and what was measured where."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from perfci.history import schema
from perfci.history.loading import runs_query
from perfci.model.history import Point, RecordedRun
from perfci.model.run import Environment
from perfci.trend.timeline.series import SeriesKey

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from perfci.trend.timeline.series import Distributions


# The values of single workers, for those runs of which somebody wants to see the spread.


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


def read_runs(connection: Connection) -> Iterator[RecordedRun]:
    """Yield every run whole, one after the other: all at once may not fit into memory."""
    runs = schema.runs.c
    query = runs_query().add_columns(runs.facts, runs.source_hashes, runs.failed)
    for row in connection.execute(query).all():
        yield _whole(connection, row)


def read_measured(
    connection: Connection, environment: str, *, with_failed: bool = True
) -> frozenset[tuple[str, str]]:
    """Return each (sha, case) with points in ``environment``, and each that failed there."""
    from sqlalchemy import select

    runs, series, points = schema.runs, schema.series, schema.points
    number = select(schema.environments.c.number).filter_by(key=environment).scalar_subquery()
    found = connection.execute(
        select(runs.c.sha, series.c.case)
        .distinct()
        .select_from(points)
        .join(runs, runs.c.number == points.c.run)
        .join(series, series.c.number == points.c.series)
        .where(runs.c.environment == number)
    )
    measured = frozenset((sha, case) for sha, case in found)
    if not with_failed:
        return measured
    failed = connection.execute(
        select(runs.c.sha, schema.documents.c.content)
        .join(schema.documents, schema.documents.c.number == runs.c.failed)
        .where(runs.c.environment == number)
    )
    return measured | {(sha, case) for sha, content in failed for case in json.loads(content)}


def _whole(connection: Connection, row: Row[Any]) -> RecordedRun:
    from sqlalchemy import and_, select

    points, values, series = schema.points, schema.worker_values, schema.series
    found = connection.execute(
        select(
            series.c.case,
            series.c.metric,
            series.c.unit,
            series.c.direction,
            points.c.value,
            values.c.packed,
        )
        .select_from(points)
        .join(series, series.c.number == points.c.series)
        .outerjoin(values, and_(values.c.run == points.c.run, values.c.series == points.c.series))
        .where(points.c.run == row.number)
        .order_by(series.c.number)
    )
    return RecordedRun(
        id=row.id,
        source=row.source,
        sha=row.sha,
        subject=row.subject,
        branch=row.branch,
        committed_at=row.committed_at,
        measured_at=row.measured_at,
        position=row.position,
        environment=Environment(row.key, _document(connection, row.facts)),
        runner=row.runner,
        points=tuple(
            Point(
                one.case,
                one.metric,
                one.unit,
                one.value,
                () if one.packed is None else unpacked(one.packed),
                one.direction,
            )
            for one in found
        ),
        source_hashes=_document(connection, row.source_hashes),
        failed=_document(connection, row.failed),
    )


def _document(connection: Connection, number: int) -> dict[str, str]:
    from sqlalchemy import select

    content = connection.execute(
        select(schema.documents.c.content).filter_by(number=number)
    ).scalar_one()
    return dict(json.loads(content))
