"""Questions with short answers: single series, what was measured, who measures what now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, false, insert, select, text

from perfci.history import schema
from perfci.history.database import Database
from perfci.history.packing import unpacked, unpacked_points
from perfci.history.records import kind_of_field
from perfci.history.runs import points_of
from perfci.history.trouble import translated
from perfci.trend.timeline.series import Distributions, SeriesKey


def read_newest(
    connection: Connection, names: Mapping[SeriesKey, Collection[str]], last: int, branch: str
) -> dict[SeriesKey, tuple[float, ...]]:
    """Return the values of each series in the newest ``last`` runs of ``branch``.

    The oldest first; a series that those runs lack is left out. ``names`` maps each to its case's
    earlier names: where a run has several, the case's own counts.
    """
    newest = {
        environment: [
            dict(zip(*points_of(connection, run), strict=True))
            for run in reversed(_newest_runs(connection, environment, last, branch))
        ]
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
    runs: Sequence[Mapping[int, float]],
) -> tuple[float, ...]:
    """Return one series' values in ``runs``, each a value by its series' number."""
    series = schema.series.c
    found = connection.execute(
        select(series.number, series.case)
        .join(schema.environments, schema.environments.c.number == series.environment)
        .where(
            schema.environments.c.key == key.environment,
            series.case.in_((key.case, *earlier)),
            series.metric == key.metric,
        )
    ).all()
    own_first = [number for number, case in sorted(found, key=lambda row: row.case != key.case)]
    of_runs = ([run[number] for number in own_first if number in run] for run in runs)
    return tuple(values[0] for values in of_runs if values)


def _order() -> tuple[ColumnElement[Any], ...]:
    """By place in the history; of one commit, as measured."""
    return schema.runs.c.position, *schema.AS_MEASURED


def add_nothing(connection: Connection) -> None:
    """Raise what recording would raise now; a transaction may begin where nothing can be written.

    Another's read-only disk or missing rights show at the first statement only.
    """
    table = schema.documents
    nothing = select(table.c.digest, table.c.content).where(false())
    connection.execute(insert(table).from_select(["digest", "content"], nothing))


# What nightly runs ask: which commits failed on a machine, and who is measuring one now.


def read_runs_without_points(
    connection: Connection, runner: str
) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """Return the sha, and the kind of failure by case, of ``runner``'s runs without a point."""
    runs, documents = schema.runs.c, schema.documents.c
    found = connection.execute(
        select(runs.sha, documents.content)
        .join(schema.documents, documents.number == runs.failed)
        .where(runs.runner == runner, ~exists().where(schema.run_points.c.run == runs.number))
        .order_by(*schema.AS_MEASURED)
    )
    return tuple(
        (sha, {case: kind_of_field(stored) for case, stored in json.loads(content).items()})
        for sha, content in found
    )


@contextmanager
def claimed(database: Database, environment: str, sha: str) -> Iterator[bool]:
    """Yield whether nobody else on this PostgreSQL has the commit in the works; then it is ours.

    An advisory lock of a connection that is kept open meanwhile: the server frees it at the end,
    and also when this process is killed, so that no claim has to expire by anybody's clock. It
    needs a session of its own: behind a pooler in transaction mode every claim is granted.
    """
    if database.address.path is not None:  # one machine's, and claimed there
        yield True
        return
    digest = hashlib.sha256(f"{environment}\0{sha}".encode()).digest()
    number = int.from_bytes(digest[:8], signed=True)
    with translated(database):
        connection = database.own_connection()
        mine = connection.execute(text("SELECT pg_try_advisory_lock(:number)"), {"number": number})
        granted = bool(mine.scalar_one())
    try:
        yield granted
    finally:
        connection.close()


def read_measured(
    connection: Connection, environment: str, *, with_failed: bool = True
) -> frozenset[tuple[str, str]]:
    """Return each (sha, case) with points in ``environment``, and each that failed there."""
    runs, series, points = schema.runs, schema.series.c, schema.run_points
    number = select(schema.environments.c.number).filter_by(key=environment).scalar_subquery()
    known = select(series.number, series.case).where(series.environment == number)
    cases = {row.number: row.case for row in connection.execute(known)}
    found = connection.execute(
        select(runs.c.sha, points.c.packed)
        .join(points, points.c.run == runs.c.number)
        .where(runs.c.environment == number)
        .execution_options(yield_per=20)
    )
    measured = frozenset(
        (sha, cases[at])
        for sha, packed in found
        for at in unpacked_points(packed)[0]
        if at in cases
    )
    if not with_failed:
        return measured
    failed = connection.execute(
        select(runs.c.sha, schema.documents.c.content)
        .join(schema.documents, schema.documents.c.number == runs.c.failed)
        .where(runs.c.environment == number)
    )
    return measured | {(sha, case) for sha, content in failed for case in json.loads(content)}


def read_environments(connection: Connection) -> tuple[str, ...]:
    """Return the keys of the environments that have runs, sorted."""
    keys = select(schema.environments.c.key).join(schema.runs).distinct()
    return tuple(sorted(connection.execute(keys).scalars()))


# The values of single workers, for those runs of which somebody wants to see the spread.


def read_values(
    connection: Connection, key: SeriesKey, run_ids: Collection[str], earlier: Collection[str] = ()
) -> dict[str, tuple[float, ...]]:
    """Return the workers' values of one series in those of the runs that have any.

    ``earlier`` are other names of the case: where a run has several, the case's own counts.
    """
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
