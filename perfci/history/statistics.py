"""Size of a history: its runs, commits, series and points, in all and by environment."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, FromClause, func, select, text

from perfci.history import schema
from perfci.history.address import HistoryAddress
from perfci.history.database_errors import damaged
from perfci.history.schema import POINT_BYTES


@dataclass(frozen=True, slots=True)
class EnvironmentStatistics:
    """Counts of one environment. Times are ISO 8601."""

    key: str
    runs: int
    commits: int
    series: int
    oldest: str
    newest: str
    runners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HistoryStatistics:
    """Counts over the whole history. ``size`` is in bytes."""

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
        """Return the number of runs in all environments."""
        return sum(environment.runs for environment in self.environments)


def statistics_of(connection: Connection, address: HistoryAddress) -> HistoryStatistics:
    """Return the history's statistics. Raises DamagedFile for a damaged SQLite file."""
    if address.path is not None:
        report = connection.execute(text("PRAGMA integrity_check(1)")).scalar_one()
        if report != "ok":
            raise damaged(address.path, " ".join(str(report).split()))
        size = address.path.stat().st_size
    else:
        size = sum(
            connection.execute(
                text("SELECT pg_total_relation_size(:name)"), {"name": name}
            ).scalar_one()
            for name in schema.metadata.tables
        )
    changes = schema.known_changes
    size_of_points = select(func.sum(func.length(schema.run_points.c.packed)))

    def count(table: FromClause) -> int:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()

    return HistoryStatistics(
        where=address.shown,
        revision=schema.REVISION,
        size=size,
        points=(connection.execute(size_of_points).scalar() or 0) // POINT_BYTES,
        outcomes=count(schema.outcomes),
        changes=count(changes),
        acknowledged=count(select(changes.c.id).where(changes.c.acknowledged).subquery()),
        environments=_environments(connection),
    )


def _environments(connection: Connection) -> tuple[EnvironmentStatistics, ...]:
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
