"""A history's database: transactions, locks, retries, creation on opening, and its errors."""

from __future__ import annotations

import logging
import os
import platform
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from perfci.errors import DamagedFile, NoHistory, OutsideError, PerfciError, UsageError
from perfci.history import schema
from perfci.history.address import HistoryAddress, file_address
from perfci.history.schema import NotPacked
from perfci.version import VERSION

T = TypeVar("T")
WAIT_S = 60.0
"""Time to wait for a lock of another process."""
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Pauses before each further attempt to write, after a lost connection or a deadlock."""
_CONNECT_S = 10
"""Default timeout of a connection to PostgreSQL."""
_WRITES = "perfci_writes"
"""Execution option of a transaction that writes. SQLite then takes the write lock at its start."""
_SQLITE_KINDS = {
    **dict.fromkeys(("SQLITE_BUSY", "SQLITE_LOCKED"), "locked"),
    **dict.fromkeys(("SQLITE_CORRUPT", "SQLITE_NOTADB"), "damaged"),
    **dict.fromkeys(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"), "unwritable"),
}
"""Kind of error by the first two words of SQLite's name of it."""
_SERVER_KINDS = {
    "55P03": "locked",
    **dict.fromkeys(("28P01", "28000", "3D000"), "refused"),
    **dict.fromkeys(("57P01", "57P02", "57P03", "08000", "08003", "08006"), "lost"),
    **dict.fromkeys(("40001", "40P01"), "beaten"),
}
"""Kind of error by SQLSTATE. ``lost`` is a server that shuts down, crashed or is starting,
``beaten`` a serialization failure or a deadlock that another writer won."""
_REFUSED = re.compile(
    r"does not exist|no pg_hba\.conf entry|authentication failed|is not permitted to log in"
    r"|permission denied for database|is not currently accepting connections"
    r"|invalid port number|invalid \w+ value|invalid connection option"
)
"""Matches the message of a connection that server or libpq refuses, which has no SQLSTATE. One in
another language doesn't match: perfci retries, and shows it in the end."""
# psycopg also logs the errors that it raises for a dying server: users would see them twice
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Database:
    """The connections to a history. Statements run inside ``reading`` or ``writing``."""

    def __init__(self, address: HistoryAddress, wait_s: float = WAIT_S) -> None:
        self.address = address
        self.wait_s = wait_s
        self._engine = _engine(address, wait_s)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the history. Raises perfci's errors.

        A SQLite transaction sees one state by default. A PostgreSQL transaction needs another
        isolation level than its default, or it would see runs that other processes record between
        two statements.
        """
        engine = self._engine
        if self.address.path is None:
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with _translating(self), engine.begin() as connection:
            yield connection

    def writing(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work``, which runs in one transaction.

        ``work`` runs again after a lost connection or a broken deadlock. The first attempt may have
        been committed, so ``work`` must be idempotent.
        """
        engine = self._engine.execution_options(**{_WRITES: True})
        for pause_s in (*PAUSES_S, None):
            try:
                with _translating(self), engine.begin() as connection:
                    return work(connection)
            except OutsideError as error:
                raised = getattr(error.__cause__, "orig", None)
                if pause_s is None or _kind_of(raised or error) not in {"lost", "beaten"}:
                    raise
                time.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")


def _engine(address: HistoryAddress, wait_s: float) -> Engine:
    if address.path is not None:
        engine = create_engine(address.url, connect_args={"timeout": wait_s})
        # without this, Python's sqlite3 would begin transactions itself
        event.listen(engine, "connect", lambda raw, _: setattr(raw, "isolation_level", None))
        event.listen(engine, "begin", _begin)
        return engine
    given = address.url.query
    arguments: dict[str, Any] = {
        "connect_timeout": given.get("connect_timeout", _CONNECT_S),
        "application_name": given.get(
            "application_name", f"perfci {VERSION} on {platform.node()}, process {os.getpid()}"
        ),
    }
    # pinged before use: the server may have restarted during a build
    engine = create_engine(address.url, connect_args=arguments, pool_size=1, pool_pre_ping=True)

    def wait_for_locks(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {round(wait_s * 1000)}")
        connection.commit()

    event.listen(engine, "connect", wait_for_locks)
    return engine


def _begin(connection: Connection) -> None:
    """Take the write lock before reading. Two writers that read first would block each other."""
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an insert of the database's dialect, which supports ``ON CONFLICT``."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def require_current(database: Database, *, create: bool) -> None:
    """Create a missing history if ``create`` is set.

    Raises UsageError for a history that is missing without ``create``, for another program's
    database and for a history of another schema. Raises DamagedFile for a damaged history.
    """
    address = database.address
    if address.path is not None:
        _require_file(address.path, create=create)
    with database.reading() as connection:
        tables = inspect(connection).get_table_names()
        number = None
        if schema.version.name in tables:
            number = connection.execute(select(schema.version.c.number)).scalar()
        if number == schema.SCHEMA:
            return
        if schema.runs.name in tables:
            if address.path is not None:
                report = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
                if report != "ok":
                    raise damaged(address.shown, " ".join(str(report).split()))
            raise UsageError(
                "other-schema",
                f"the history {address.shown} has the schema {number}, and this perfci reads "
                f"{schema.SCHEMA}",
                "Write it to a file with the perfci that made it, `perfci history export FILE`, "
                "and import the file into a new history: `perfci history import FILE`.",
            )
    if address.path is not None:
        held = f"it holds {', '.join(tables[:3])}" if tables else "it holds no tables"
        raise NoHistory(
            "no-history",
            f"{address.path} is a SQLite database, and no history of perfci's: {held}",
            "Name another file.",
        )
    if not create:
        raise _missing(address.shown)
    database.writing(create_tables)


def create_tables(connection: Connection) -> None:
    """Create the tables that are missing, and note the schema's number."""
    if connection.dialect.name == "postgresql":  # a second process waits here
        lock = {"lock": schema.CREATION_LOCK}
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), lock)
    schema.metadata.create_all(connection)
    number = insert_into(connection, schema.version).values(number=schema.SCHEMA)
    connection.execute(number.on_conflict_do_nothing(index_elements=["number"]))


def _require_file(path: Path, *, create: bool) -> None:
    if not os.path.lexists(path):
        if not create:
            raise _missing(str(path))
        _make(path)
    if not path.is_file():
        raise NoHistory(
            "no-history", f"{path} is no file", "Name a file, or one that doesn't exist yet."
        )
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _unopened(path, error) from error
    if size == 0:
        raise damaged(str(path), "it is empty, and perfci never leaves a history so")


def _make(path: Path) -> None:
    """Create the file under another name, then link it, so that it is never seen half-written."""
    made = path.with_name(f".{path.name}-{secrets.token_hex(6)}.making")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = Database(file_address(made))
        database.writing(create_tables)
        database.close()
        os.link(made, path)
    except FileExistsError:  # another process was quicker
        pass
    except OSError as error:
        raise _unopened(path, error) from error
    finally:
        made.unlink(missing_ok=True)


def _missing(shown: str) -> NoHistory:
    return NoHistory(
        "no-history",
        f"there is no history at {shown}",
        "`perfci run --record` begins one; --history, PERFCI_HISTORY or `history` in "
        "[tool.perfci] say where it is.",
    )


def _unopened(path: Path, error: OSError) -> OutsideError:
    return OutsideError(
        "history-unwritable",
        f"the history {path} can't be opened: {error.strerror}",
        "Choose another path with --history, or give this user the right to write there.",
    )


@contextmanager
def _translating(database: Database) -> Iterator[None]:
    """Raise the database's errors as perfci's. The original is the ``__cause__``."""
    try:
        yield
    except DBAPIError as error:
        raise _as_perfcis(database, error.orig or error) from error
    except (sqlite3.Error, NotPacked) as error:  # the former from the driver's own cursor
        raise _as_perfcis(database, error) from error


def _kind_of(error: BaseException) -> str:
    """Return what a driver's error means. A refusal is final; a lost server may come back."""
    if isinstance(error, NotPacked):
        return "damaged"
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "")
        # an error without a name is Python's own, here on text that can't be decoded
        unnamed = "damaged" if not name and "decode" in str(error) else "failed"
        return _SQLITE_KINDS.get("_".join(name.split("_")[:2]), unnamed)
    import psycopg

    if not isinstance(error, psycopg.Error):
        return "failed"
    if error.sqlstate is not None:
        return _SERVER_KINDS.get(error.sqlstate, "failed")
    lacks_password = error.pgconn is not None and error.pgconn.needs_password
    if lacks_password or _REFUSED.search(str(error)):
        return "refused"
    return "lost" if isinstance(error, psycopg.OperationalError) else "failed"


def _as_perfcis(database: Database, error: BaseException) -> PerfciError:
    shown = database.address.shown
    message = database.address.scrubbed(" ".join(str(error).split()))
    kind = _kind_of(error)
    if kind == "damaged":
        return damaged(shown, message)
    if kind == "refused":
        return UsageError(
            "history-refused",
            f"{shown} doesn't let perfci in: {message}",
            "Check the address, its port, the user and the password (PGPASSWORD or ~/.pgpass).",
        )
    what, advice = {
        "locked": (
            f"was locked by another process for {database.wait_s:g} s",
            "Wait until that has ended, or end it",
        ),
        "unwritable": (
            f"can't be opened for writing: {message}",
            "Give this user the right to write the file and its folder, or name another",
        ),
        "lost": (
            f"can't be reached, or the connection was lost: {message}",
            "See that the server runs",
        ),
    }.get(kind, (f"can't be used: {message}", "Look for room on its disk"))
    return OutsideError(
        f"history-{kind if kind in ('locked', 'unwritable', 'lost') else 'failed'}",
        f"{shown} {what}",
        f"{advice}, and run this again: recording twice is safe, and every run that is recorded is "
        "whole.",
    )


def damaged(shown: str, why: str) -> DamagedFile:
    """Return the error for a damaged history."""
    return DamagedFile(
        "damaged-history",
        f"the history {shown} is damaged: {why}",
        "Restore it from a copy, or move it away and import an export; it is left as it is.",
    )
