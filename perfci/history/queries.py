"""Questions with short answers: single series, known changes, outcomes, how much is held."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    case,
    exists,
    false,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from perfci.errors import UsageError
from perfci.history import schema
from perfci.history.database import Address, Database, insert_into
from perfci.history.records import kind_of_field
from perfci.history.runs import points_of
from perfci.history.schema import POINT_BYTES, unpacked, unpacked_points
from perfci.history.trouble import damaged, translated
from perfci.model.run import GateOutcome
from perfci.trend.change import KnownChange
from perfci.trend.series import Distributions, SeriesKey

_SHORTEST = 4


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


def write_outcome(connection: Connection, outcome: GateOutcome) -> bool:
    """Write ``outcome`` and return True, or False where its id is there already."""
    table = schema.outcomes
    written = connection.execute(
        insert_into(connection, table)
        .values(**asdict(outcome))
        .on_conflict_do_nothing(index_elements=["id"])
        .returning(table.c.id)
    )
    return written.first() is not None


def read_outcomes(connection: Connection) -> tuple[GateOutcome, ...]:
    """Return every outcome, the oldest first."""
    table = schema.outcomes
    rows = connection.execute(select(table).order_by(table.c.created_at, table.c.id))
    return tuple(GateOutcome(**row) for row in rows.mappings())


def read_changes(connection: Connection) -> tuple[KnownChange, ...]:
    """Return every change that was remembered, in the order of when it was first seen."""
    table = schema.known_changes
    rows = connection.execute(select(table).order_by(table.c.first_seen_at, table.c.id))
    return tuple(
        KnownChange(
            id=row.id,
            series=SeriesKey(row.environment, row.case, row.metric),
            sha_before=row.sha_before,
            sha_after=row.sha_after,
            worse=row.worse,
            first_seen_at=row.first_seen_at,
            acknowledged=row.acknowledged,
            note=row.note,
            event=row.event,
        )
        for row in rows
    )


def write_changes(connection: Connection, changes: Sequence[KnownChange]) -> None:
    """Write what an analysis saw.

    Of a change that is there already, its place is renewed. When it was first seen stays, and so
    do an acknowledgement and its note: what is imported may be older than they are.
    """
    if not changes:
        return
    table = schema.known_changes
    statement = insert_into(connection, table)
    new = statement.excluded
    place = ("environment", "case", "metric", "sha_before", "sha_after", "worse", "event")
    renewed = {name: new[name] for name in place} | {
        "acknowledged": or_(table.c.acknowledged, new.acknowledged),
        "note": case((table.c.note != "", table.c.note), else_=new.note),
    }
    connection.execute(
        statement.on_conflict_do_update(index_elements=["id"], set_=renewed),
        [
            {
                "id": one.id,
                **one.series._asdict(),
                "sha_before": one.sha_before,
                "sha_after": one.sha_after,
                "worse": one.worse,
                "first_seen_at": one.first_seen_at,
                "acknowledged": one.acknowledged,
                "note": one.note,
                "event": one.event,
            }
            for one in sorted(changes, key=lambda one: one.id)
        ],
    )


def try_changes(connection: Connection, changes: Sequence[KnownChange]) -> None:
    """Do what ``write_changes`` does, and take it back: rights, locks and room are as then."""
    with connection.begin_nested() as tried:
        write_changes(connection, changes)
        tried.rollback()


def acknowledge_change(
    connection: Connection, given: str, note: str, *, accepted: bool = True
) -> str:
    """Mark the change whose id is, or alone begins with, ``given``; return its id.

    The id of an event stands for all of its changes.

    Accepted again without a note, it keeps the one that it has.
    """
    table = schema.known_changes
    rows = connection.execute(
        select(table.c.id, table.c.event).order_by(table.c.first_seen_at)
    ).all()
    every = tuple(dict.fromkeys(id_ for row in rows for id_ in row if id_))
    begin = [one for one in every if one.startswith(given)] if len(given) >= _SHORTEST else []
    found = [given] if given in every else begin
    if len(found) != 1:
        known = f"Known: {', '.join(every[-5:])}." if every else "No change is known yet."
        raise UsageError(
            "unknown-change",
            f"`{given}` is the beginning of {len(found)} changes' ids"
            if found
            else f"no change has the id `{given}`",
            f"`perfci trend` names each change's id. {known}",
        )
    kept = table.c.note if accepted and not note else note
    connection.execute(
        update(table)
        .where(or_(table.c.id == found[0], table.c.event == found[0]))
        .values(acknowledged=accepted, note=kept)
    )
    return found[0]


# Whose history it is: the first project that records keeps others out.
def name_project(connection: Connection, project: str) -> str:
    """Return the project of this history: ``project`` where there was none."""
    table = schema.project
    connection.execute(
        insert_into(connection, table)
        .values(number=1, name=project)
        .on_conflict_do_nothing(index_elements=["number"])
    )
    return str(connection.execute(select(table.c.name)).scalar_one())


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
    size_of_points = select(func.sum(func.length(schema.run_points.c.packed)))

    def count(table: FromClause) -> int:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()

    return Statistics(
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
