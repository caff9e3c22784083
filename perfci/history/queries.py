"""The newest values of a few series: what a report shows beside what it just measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.history import schema
from perfci.history.address import Address
from perfci.history.trouble import damaged, translated
from perfci.trend.timeline.series import SeriesKey

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, FromClause

    from perfci.history.database import Database


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


# What nightly runs ask: which commits failed on a machine, and who is measuring one now.


def read_runs_without_points(
    connection: Connection, runner: str
) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """Return the sha, and the kind of failure by case, of ``runner``'s runs without a point."""
    from sqlalchemy import exists, select

    from perfci.history.recorded import kind_of_field

    runs, documents = schema.runs.c, schema.documents.c
    found = connection.execute(
        select(runs.sha, documents.content)
        .join(schema.documents, documents.number == runs.failed)
        .where(runs.runner == runner, ~exists().where(schema.points.c.run == runs.number))
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
    from sqlalchemy import text

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


# How much a history holds, and whether it is sound.


@dataclass(frozen=True, slots=True)
class EnvironmentStatistics:
    """One environment's part. Times are ISO 8601."""

    key: str
    runs: int
    commits: int
    series: int
    oldest: str
    newest: str
    runners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The whole history. ``size`` is in bytes."""

    where: str
    revision: str
    size: int
    points: int
    outcomes: int
    changes: int
    acknowledged: int
    environments: tuple[EnvironmentStatistics, ...]

    @property
    def runs(self) -> int:
        """Of all environments."""
        return sum(one.runs for one in self.environments)


def statistics_of(connection: Connection, address: Address) -> Statistics:
    """Count; DamagedFile where SQLite finds its own file damaged anywhere."""
    from sqlalchemy import func, select, text

    if address.path is not None:
        said = connection.execute(text("PRAGMA integrity_check(1)")).scalar_one()
        if said != "ok":
            raise damaged(address.path, " ".join(str(said).split()))
        size = address.path.stat().st_size
    else:
        size = sum(
            connection.execute(
                text("SELECT pg_total_relation_size(:name)"), {"name": name}
            ).scalar_one()
            for name in schema.metadata.tables
        )
    changes = schema.known_changes

    def count(table: FromClause) -> int:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()

    return Statistics(
        where=address.shown,
        revision=schema.REVISION,
        size=size,
        points=count(schema.points),
        outcomes=count(schema.outcomes),
        changes=count(changes),
        acknowledged=count(select(changes.c.id).where(changes.c.acknowledged).subquery()),
        environments=_environments(connection),
    )


def _environments(connection: Connection) -> tuple[EnvironmentStatistics, ...]:
    from sqlalchemy import func, select

    runs, series = schema.runs, schema.series
    counted = {
        row.environment: row.held
        for row in connection.execute(
            select(series.c.environment, func.count().label("held")).group_by(series.c.environment)
        )
    }
    named: dict[int, list[str]] = {}
    for number, runner in connection.execute(
        select(runs.c.environment, runs.c.runner).distinct().order_by(runs.c.runner)
    ):
        named.setdefault(number, []).append(runner)
    return tuple(
        EnvironmentStatistics(
            key=row.key,
            runs=row.runs,
            commits=row.commits,
            series=counted.get(row.number, 0),
            oldest=row.oldest,
            newest=row.newest,
            runners=tuple(named[row.number]),
        )
        for row in connection.execute(
            select(
                schema.environments.c.number,
                schema.environments.c.key,
                func.count().label("runs"),
                func.count(runs.c.sha.distinct()).label("commits"),
                func.min(runs.c.measured_at).label("oldest"),
                func.max(runs.c.measured_at).label("newest"),
            )
            .join(runs, runs.c.environment == schema.environments.c.number)
            .group_by(schema.environments.c.number, schema.environments.c.key)
            .order_by(schema.environments.c.key)
        )
    )
