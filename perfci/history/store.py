"""An open history: everything that is recorded into it and read from it."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial

from sqlalchemy import Connection, case, exists, false, insert, or_, select, update

from perfci.errors import UsageError, extra_advice
from perfci.history import schema
from perfci.history.address import parse_address
from perfci.history.database import WAIT_S, Database, insert_into, require_current
from perfci.history.runs import (
    header_of,
    kind_of_field,
    points_of,
    read_runs,
    record_runs,
    require_recordable,
    runs_query,
)
from perfci.history.schema import document, unpacked_points
from perfci.model.run import GateOutcome, RecordedRun, RunHeader
from perfci.trend import KnownChange, LoadedHistory, SeriesKey
from perfci.trend.timelines import current_name

_RUNS_IN_TRANSACTION = 20
"""Several runs at a time, because waiting for the disk takes longer than writing one run."""
_SHORTEST_ID = 4
"""Least number of characters by which a user may name a change's id."""
_CHANGE_FIELDS = (
    "sha_before", "sha_after", "worse", "first_seen_at", "acknowledged", "note", "event",
    "withdrawn",
)  # fmt: skip
"""Columns that have the names of ``KnownChange``'s fields."""
_RENEWED = (
    "environment", "case", "metric", "sha_before", "sha_after", "worse", "event", "withdrawn",
)  # fmt: skip
"""Columns that ``remember`` overwrites in a change that is known already."""


@contextmanager
def open_history(
    url_or_path: str, *, create: bool = True, wait_s: float = WAIT_S
) -> Iterator[OpenHistory]:
    """Yield the history in a file or at a ``postgresql://`` address.

    A missing history is created if ``create`` is set. Raises UsageError for a history that is
    missing without ``create`` or has another schema, and DamagedFile for a damaged one. Waits up to
    ``wait_s`` for a lock of another process. Raises OutsideError after that, and if the database
    fails.
    """
    address = parse_address(url_or_path)
    if address.path is None:
        _require_driver()
    database = Database(address, wait_s)
    try:
        require_current(database, create=create)
        yield OpenHistory(database)
    finally:
        database.close()


class OpenHistory:
    """An open history. Made by ``open_history``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def shown(self) -> str:
        """Its address, without a password."""
        return self._database.address.shown

    def record(self, runs: Sequence[RecordedRun]) -> int:
        """Add the ``runs`` that aren't there yet, each as a whole. Return their number.

        Raises UsageError, before anything is written, for a run that couldn't be read back as it
        is.
        """
        for run in runs:
            require_recordable(run)
        return sum(
            self._database.writing(
                partial(record_runs, runs=runs[first : first + _RUNS_IN_TRANSACTION])
            )
            for first in range(0, len(runs), _RUNS_IN_TRANSACTION)
        )

    def runs(self, *, environment: str | None = None) -> tuple[RunHeader, ...]:
        """Return the runs of one environment, or of all, in the order of measuring."""
        query = runs_query()
        if environment is not None:
            query = query.where(schema.runs.c.environment == environment)
        with self._database.reading() as connection:
            return tuple(header_of(row) for row in connection.execute(query))

    def load_arrays(self) -> LoadedHistory:
        """Return all runs and all series."""
        from perfci.history.arrays import load_history  # numpy, which recording does not need

        with self._database.reading() as connection:
            return load_history(connection)

    def recorded_runs(self) -> Iterator[RecordedRun]:
        """Yield every run as it was recorded, in the order of measuring."""
        with self._database.reading() as connection:
            yield from read_runs(connection)

    def export(self) -> Iterator[RecordedRun | GateOutcome | KnownChange]:
        """Yield the content of an export: all runs, outcomes and known changes."""
        yield from self.recorded_runs()
        yield from self.outcomes()
        yield from self.known_changes()

    def newest(
        self, keys: Collection[SeriesKey], last: int, branch: str, aliases: Mapping[str, str]
    ) -> Mapping[SeriesKey, tuple[float, ...]]:
        """Return the values of series in the newest ``last`` runs of ``branch``, oldest first.

        ``aliases`` map earlier names of cases. A series without values is left out.
        """
        values: dict[SeriesKey, tuple[float, ...]] = {}
        with self._database.reading() as connection:
            for environment in {key.environment for key in keys}:
                runs = [
                    dict(zip(*points_of(connection, run), strict=True))
                    for run in reversed(_newest_runs(connection, environment, last, branch))
                ]
                for key in (key for key in keys if key.environment == environment):
                    numbers = _numbers_of(connection, key, aliases)
                    here = (next((run[n] for n in numbers if n in run), None) for run in runs)
                    values[key] = tuple(value for value in here if value is not None)
        return {key: recorded for key, recorded in values.items() if recorded}

    def measured(self, environment: str, *, failed: bool = True) -> frozenset[tuple[str, str]]:
        """Return each (sha, case) measured in ``environment``, with ``failed`` also each failed."""
        runs, series, points = schema.runs, schema.series.c, schema.run_points
        known = select(series.number, series.case).where(series.environment == environment)
        with_points = (
            select(runs.c.sha, points.c.packed)
            .join(points, points.c.run == runs.c.number)
            .where(runs.c.environment == environment)
            .execution_options(yield_per=20)
        )
        with_failures = (
            select(runs.c.sha, schema.documents.c.content)
            .join(schema.documents, schema.documents.c.number == runs.c.failed)
            .where(runs.c.environment == environment)
        )
        with self._database.reading() as connection:
            cases = {row.number: row.case for row in connection.execute(known)}
            measured = frozenset(
                (sha, cases[at])
                for sha, packed in connection.execute(with_points)
                for at in unpacked_points(packed)[0]
                if at in cases
            )
            if not failed:
                return measured
            return measured | {
                (sha, name)
                for sha, content in connection.execute(with_failures)
                for name in document(content)
            }

    def runs_without_points(self, runner: str) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """Return the sha, and each case's kind of failure, of ``runner``'s runs without a point."""
        runs, documents = schema.runs.c, schema.documents.c
        query = (
            select(runs.sha, documents.content)
            .join(schema.documents, documents.number == runs.failed)
            .where(runs.runner == runner, ~exists().where(schema.run_points.c.run == runs.number))
            .order_by(*schema.AS_MEASURED)
        )
        with self._database.reading() as connection:
            return tuple(
                (sha, {name: kind_of_field(stored) for name, stored in document(content).items()})
                for sha, content in connection.execute(query)
            )

    def record_outcome(self, outcome: GateOutcome) -> bool:
        """Add how a report ended. Return whether it was new."""
        table = schema.outcomes

        def write(connection: Connection) -> bool:
            written = connection.execute(
                insert_into(connection, table)
                .values(**asdict(outcome))
                .on_conflict_do_nothing(index_elements=["id"])
                .returning(table.c.id)
            )
            return written.first() is not None

        return self._database.writing(write)

    def outcomes(self) -> tuple[GateOutcome, ...]:
        """Return how the recorded reports ended, the oldest first."""
        table = schema.outcomes
        query = select(table).order_by(table.c.created_at, table.c.id)
        with self._database.reading() as connection:
            return tuple(GateOutcome(**row) for row in connection.execute(query).mappings())

    def known_changes(self) -> tuple[KnownChange, ...]:
        """Return the changes that earlier analyses remembered, by when they were first seen."""
        table = schema.known_changes
        query = select(table).order_by(table.c.first_seen_at, table.c.id)
        with self._database.reading() as connection:
            return tuple(
                KnownChange(
                    id=row["id"],
                    series=SeriesKey(row["environment"], row["case"], row["metric"]),
                    **{name: row[name] for name in _CHANGE_FIELDS},
                )
                for row in connection.execute(query).mappings()
            )

    def remember(self, changes: Sequence[KnownChange]) -> None:
        """Add or renew changes.

        A change that is known already keeps its ``first_seen_at`` and its acknowledgement, because
        an imported change may be older.
        """
        self._database.writing(partial(_write_changes, changes=changes))

    def acknowledge(self, change: str, note: str = "", *, undo: bool = False) -> str:
        """Acknowledge a change, or open it again (``undo``), and return its id.

        ``change`` is the id, or a beginning that no other id has. The id of an event stands for all
        of its changes. Without ``note`` an earlier note stays, unless it is undone.
        """
        table = schema.known_changes
        new: dict[str, object] = {"acknowledged": not undo}
        if note or undo:
            new["note"] = note

        def write(connection: Connection) -> str:
            rows = connection.execute(
                select(table.c.id, table.c.event).order_by(table.c.first_seen_at)
            )
            known = tuple(dict.fromkeys(id_ for row in rows for id_ in row if id_))
            id_ = _only_match(change, known)
            of_change = or_(table.c.id == id_, table.c.event == id_)
            connection.execute(update(table).where(of_change).values(new))
            return id_

        return self._database.writing(write)

    def require_writable(self) -> None:
        """Raise what recording would raise now: no right to write, or a read-only disk.

        A transaction may begin even where nothing can be written, so an INSERT of no rows is run.
        """
        table = schema.documents
        nothing = select(table.c.digest, table.c.content).where(false())
        insert_nothing = insert(table).from_select(["digest", "content"], nothing)
        self._database.writing(lambda connection: connection.execute(insert_nothing))

    def require_project(self, project: str) -> None:
        """Name the history after its first ``project``. Raises UsageError for any other project."""
        table = schema.project

        def name_project(connection: Connection) -> str:
            connection.execute(
                insert_into(connection, table)
                .values(number=1, name=project)
                .on_conflict_do_nothing(index_elements=["number"])
            )
            return str(connection.execute(select(table.c.name)).scalar_one())

        owner = self._database.writing(name_project)
        if owner != project:
            raise UsageError(
                "other-project",
                f"{self.shown} is the history of another project, {owner}; this one is {project}",
                "Series of one name would be mixed: give this project a file, a database or a "
                "PostgreSQL schema of its own (docs/history.md). Where both are one project: "
                f'project = "{owner}" in [tool.perfci].',
            )


def _newest_runs(connection: Connection, environment: str, last: int, branch: str) -> Sequence[int]:
    """Return the numbers of the newest runs, by position on the branch, then by time measured."""
    runs = schema.runs
    order = (runs.c.position, *schema.AS_MEASURED)
    newest = (
        select(runs.c.number)
        .where(runs.c.environment == environment, runs.c.branch == branch)
        .order_by(*(column.desc().nulls_last() for column in order))
        .limit(last)
    )
    return connection.execute(newest).scalars().all()


def _numbers_of(connection: Connection, key: SeriesKey, aliases: Mapping[str, str]) -> list[int]:
    """Return a series' number under its case's own name, then those under its earlier names."""
    series = schema.series.c
    query = select(series.number, series.case).filter_by(
        environment=key.environment, metric=key.metric
    )
    rows = [row for row in connection.execute(query) if current_name(row.case, aliases) == key.case]
    return [number for number, _ in sorted(rows, key=lambda row: row.case != key.case)]


def _write_changes(connection: Connection, changes: Sequence[KnownChange]) -> None:
    if not changes:
        return
    table = schema.known_changes
    statement = insert_into(connection, table)
    new = statement.excluded
    renewed = {name: new[name] for name in _RENEWED} | {
        "acknowledged": or_(table.c.acknowledged, new.acknowledged),
        "note": case((table.c.note != "", table.c.note), else_=new.note),
    }
    connection.execute(
        statement.on_conflict_do_update(index_elements=["id"], set_=renewed),
        [
            {"id": change.id, **change.series._asdict()}
            | {name: getattr(change, name) for name in _CHANGE_FIELDS}
            for change in sorted(changes, key=lambda change: change.id)
        ],
    )


def _only_match(given: str, known: Sequence[str]) -> str:
    """Return the known id that equals ``given``, or the only one that begins with it."""
    begin = [id_ for id_ in known if id_.startswith(given)] if len(given) >= _SHORTEST_ID else []
    matches = [given] if given in known else begin
    if len(matches) == 1:
        return matches[0]
    shown = f"Known: {', '.join(known[-5:])}." if known else "No change is known yet."
    raise UsageError(
        "unknown-change",
        f"`{given}` is the beginning of {len(matches)} changes' ids"
        if matches
        else f"no change has the id `{given}`",
        f"`perfci trend` names each change's id, of which at least {_SHORTEST_ID} characters are "
        f"needed. {shown}",
    )


def _require_driver() -> None:
    if importlib.util.find_spec("psycopg") is None:
        raise UsageError(
            "no-postgres-driver",
            "a history in PostgreSQL needs psycopg, which isn't installed",
            extra_advice("postgres"),
        )
