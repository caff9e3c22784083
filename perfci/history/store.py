"""The store of recorded runs: opened, written and read.

Every write is one transaction. A run that is recorded twice is there once, so any command may be
repeated.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial

from sqlalchemy import Connection, case, false, or_, select, update

from perfci.errors import UsageError, extra_advice
from perfci.history import database
from perfci.history.address import parse_address
from perfci.history.database import WAIT_S, Database, insert_into, require_current
from perfci.history.runs import (
    documents_of,
    header_of,
    read_runs,
    record_runs,
    require_recordable,
    runs_query,
)
from perfci.model.run import RecordedRun, RunHeader
from perfci.trend import KnownChange, LoadedHistory, SeriesKey

_SHORTEST_ID = 4
"""Least number of characters by which a user may name a change's id."""
_KEPT = {"id", "first_seen_at", "acknowledged", "note"}
"""Columns of a known change that ``remember`` doesn't overwrite."""


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
    if address.path is None and importlib.util.find_spec("psycopg") is None:
        raise UsageError(
            "no-postgres-driver",
            "a history in PostgreSQL needs psycopg, which isn't installed",
            extra_advice("postgres"),
        )
    connections = Database(address, wait_s)
    try:
        require_current(connections, create=create)
        yield OpenHistory(connections)
    finally:
        connections.close()


class OpenHistory:
    """An open history. Made by ``open_history``."""

    def __init__(self, connections: Database) -> None:
        self._database = connections

    @property
    def shown(self) -> str:
        """Its address, without a password."""
        return self._database.address.shown

    def record(self, runs: Sequence[RecordedRun]) -> int:
        """Add the ``runs`` that aren't there yet, in one transaction. Return their number.

        Raises UsageError, before anything is written, for a run that couldn't be read back as it
        is.
        """
        for run in runs:
            require_recordable(run)
        return self._database.writing(partial(record_runs, runs=runs))

    def runs(self, *, environment: str | None = None) -> tuple[RunHeader, ...]:
        """Return the runs of one environment, or of all, in the order of measuring."""
        query = runs_query()
        if environment is not None:
            query = query.filter_by(environment=environment)
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

    def export(self) -> Iterator[RecordedRun | KnownChange]:
        """Yield the content of an export: all runs and known changes."""
        yield from self.recorded_runs()
        yield from self.known_changes()

    def measured(self, environment: str, *, failed: bool = True) -> frozenset[tuple[str, str]]:
        """Return each (sha, case) measured in ``environment``, with ``failed`` also each failed."""
        query = select(database.runs.c.sha, database.runs.c.document).filter_by(
            environment=environment
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            documents = documents_of(connection, {row.document for row in rows})
        cases = {
            number: {*(name.case for name in each.series), *(each.failed if failed else ())}
            for number, each in documents.items()
        }
        return frozenset((row.sha, case) for row in rows for case in cases[row.document])

    def known_changes(self) -> tuple[KnownChange, ...]:
        """Return the changes that earlier analyses remembered, by when they were first seen."""
        table = database.known_changes
        query = select(table).order_by(table.c.first_seen_at, table.c.id)
        with self._database.reading() as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
        return tuple(
            KnownChange(series=SeriesKey(*(row.pop(name) for name in SeriesKey._fields)), **row)
            for row in rows
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
        table = database.known_changes
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

        A transaction may begin even where nothing can be written, so a change of no row is run.
        """
        nothing = update(database.schema).where(false()).values(number=0)
        self._database.writing(lambda connection: connection.execute(nothing))

    def require_project(self, project: str) -> None:
        """Name the history after its first ``project``. Raises UsageError for any other project."""
        table = database.schema
        name = update(table).where(table.c.project.is_(None)).values(project=project)

        def name_project(connection: Connection) -> str:
            connection.execute(name)
            return str(connection.execute(select(table.c.project)).scalar_one())

        owner = self._database.writing(name_project)
        if owner != project:
            raise UsageError(
                "other-project",
                f"{self.shown} is the history of another project, {owner}; this one is {project}",
                "Series of one name would be mixed: give this project a file, a database or a "
                "PostgreSQL schema of its own (docs/history.md). If both are one project: "
                f'project = "{owner}" in [tool.perfci].',
            )


def _write_changes(connection: Connection, changes: Sequence[KnownChange]) -> None:
    if not changes:
        return
    table = database.known_changes
    statement = insert_into(connection, table)
    new = statement.excluded
    renewed = {column.name: new[column.name] for column in table.c if column.name not in _KEPT} | {
        "acknowledged": or_(table.c.acknowledged, new.acknowledged),
        "note": case((table.c.note != "", table.c.note), else_=new.note),
    }
    rows = (asdict(change) for change in sorted(changes, key=lambda change: change.id))
    connection.execute(
        statement.on_conflict_do_update(index_elements=["id"], set_=renewed),
        [row | SeriesKey(*row.pop("series"))._asdict() for row in rows],
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
        f"{len(matches)} changes have an id that begins with `{given}`",
        f"`perfci trend` names each change's id, of which at least {_SHORTEST_ID} characters are "
        f"needed. {shown}",
    )
