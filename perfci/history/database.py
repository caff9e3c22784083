"""One history's connection: transactions, waiting for a lock, and another try when it is lost."""

from __future__ import annotations

import logging
import os
import platform
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Table, create_engine, event, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from perfci.errors import OutsideError
from perfci.history.address import Address
from perfci.history.trouble import is_lost, is_momentary, of_sqlite, translated
from perfci.model.version import VERSION

T = TypeVar("T")

# what psycopg logs of a dying server, the error that it raises says, too: not on a user's screen
logging.getLogger("psycopg").addHandler(logging.NullHandler())

WAIT_S = 60.0
"""How long another's lock is waited for."""
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Before each further try to write over a lost connection."""
_CONNECT_S = 10
_WRITES = "perfci_writes"


class Database:
    """A history's database. Every statement runs in a transaction of ``reading`` or ``writing``."""

    def __init__(self, address: Address, wait_s: float = WAIT_S) -> None:
        self.address = address
        self.wait_s = wait_s
        self._engine = _engine(address, wait_s)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the history. Errors are perfci's.

        SQLite's transactions do by themselves. PostgreSQL's usual ones would see, between two
        statements, what others recorded meanwhile: points of runs that were not read.
        """
        engine = self._engine
        if self.address.path is None:
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with translated(self), engine.begin() as connection:
            yield connection

    def own_connection(self) -> Connection:
        """Return a connection outside transactions, which closing it really ends."""
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()
        return connection

    def writing(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` returns, done in one transaction.

        It is done again where the connection was lost or a deadlock was broken: it may have been
        committed or not, so ``work`` has to be such that doing it twice is doing it once.
        """
        engine = self._engine.execution_options(**{_WRITES: True})
        tries = 0
        while True:
            try:
                with translated(self), engine.begin() as connection:
                    return work(connection)
            except OutsideError as error:
                cause = error.__cause__
                raised = cause.orig if isinstance(cause, DBAPIError) else None
                if raised is None or tries == len(PAUSES_S):
                    raise
                if self.address.path is not None or not (is_lost(raised) or is_momentary(raised)):
                    raise
                time.sleep(PAUSES_S[tries])
                tries += 1


def _engine(address: Address, wait_s: float) -> Engine:
    if address.path is not None:
        engine = create_engine(address.url, connect_args={"timeout": wait_s})
        event.listen(engine, "connect", _own_transactions)
        event.listen(engine, "begin", _begin)
        return engine
    given = address.url.query
    arguments: dict[str, Any] = {
        "connect_timeout": given.get("connect_timeout", _CONNECT_S),
        "application_name": given.get(
            "application_name", f"perfci {VERSION} on {platform.node()}, process {os.getpid()}"
        ),
    }
    # asked first whether it lives: between two uses may lie a build, and a server's restart
    engine = create_engine(address.url, connect_args=arguments, pool_size=1, pool_pre_ping=True)

    def wait_for_locks(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {round(wait_s * 1000)}")
        connection.commit()

    event.listen(engine, "connect", wait_for_locks)
    return engine


def _own_transactions(connection: Any, _record: object) -> None:
    """Keep Python's sqlite3 from beginning transactions at moments of its own."""
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    """Take the write lock before reading: two that read first could neither go on nor wait."""
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return the insert of the database's own kind, which knows ``ON CONFLICT``."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert whole ``rows``, each in the order of the table's columns.

    SQLite's driver takes them as they are: SQLAlchemy would look at every value, which takes longer
    than to write it.
    """
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        statement = str(insert(table).compile(dialect=connection.dialect))
        connection.exec_driver_sql(statement, list(rows))
    else:
        names = table.columns.keys()
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


# A copy of a SQLite file as it was at one moment, without changing the file.


def copy_file(path: Path, copy: Path, wait_s: float = WAIT_S) -> None:
    """Copy the SQLite database at ``path``. Who writes into it meanwhile is waited for.

    DamagedFile where it is no database, and OutsideError where it is locked for longer than
    ``wait_s``.
    """
    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with (
            closing(
                sqlite3.connect(address, timeout=wait_s, isolation_level=None, uri=True)
            ) as reader,
            closing(sqlite3.connect(copy)) as written,
        ):
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()  # waits, and then holds
            reader.backup(written)
    except sqlite3.Error as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise of_sqlite(path, wait_s, error) from error
        _copy_with_journal(path, copy)


def _copy_with_journal(path: Path, copy: Path) -> None:
    """Copy what a killed writer left, half written: nobody holds it, and the copy is taken back."""
    for suffix in ("", "-journal"):
        shutil.copyfile(path.with_name(path.name + suffix), copy.with_name(copy.name + suffix))
