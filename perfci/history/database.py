"""A history's database: transactions, locks, retries, and migrations on opening."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Table, create_engine, event, insert, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from perfci.errors import DamagedFile, NoHistory, OutsideError, UsageError
from perfci.history.address import HistoryAddress, file_address
from perfci.history.database_errors import damaged, is_lost, is_momentary, of_sqlite, translated
from perfci.history.schema import MIGRATION_LOCK, REVISION, VERSION_TABLE
from perfci.version import VERSION

T = TypeVar("T")
WAIT_S = 60.0
"""Time to wait for a lock of another process."""
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Pauses before each further attempt to write over a lost connection."""
_CONNECT_S = 10
_WRITES = "perfci_writes"
MIGRATIONS = Path(__file__).with_name("migrations")


# psycopg also logs what its errors say of a dying server, which users would see twice
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

        SQLite's transactions do so by default. PostgreSQL's default ones would see runs that other
        processes record between two statements.
        """
        engine = self._engine
        if self.address.path is None:
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with translated(self), engine.begin() as connection:
            yield connection

    def own_connection(self) -> Connection:
        """Return a connection without transactions. Closing it ends its session."""
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()
        return connection

    def writing(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work``, which runs in one transaction.

        ``work`` runs again where the connection was lost or a deadlock was broken. The first
        attempt may have been committed, so ``work`` must be idempotent.
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


def _engine(address: HistoryAddress, wait_s: float) -> Engine:
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
    # pinged before use: the server may have restarted during a build
    engine = create_engine(address.url, connect_args=arguments, pool_size=1, pool_pre_ping=True)

    def wait_for_locks(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {round(wait_s * 1000)}")
        connection.commit()

    event.listen(engine, "connect", wait_for_locks)
    return engine


def _own_transactions(connection: Any, _record: object) -> None:
    """Keep Python's sqlite3 from beginning transactions itself."""
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    """Take the write lock before reading. Two writers that read first would block each other."""
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an insert of the database's dialect, which supports ``ON CONFLICT``."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert whole ``rows``, each in the order of the table's columns.

    SQLite's driver takes them as they are. SQLAlchemy would inspect every value, which takes longer
    than writing it.
    """
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        statement = str(insert(table).compile(dialect=connection.dialect))
        connection.exec_driver_sql(statement, list(rows))
    else:
        names = table.columns.keys()
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


def copy_file(path: Path, copy: Path, wait_s: float = WAIT_S) -> None:
    """Copy the SQLite database at ``path`` in one state, without changing it.

    Raises DamagedFile where it is no database, and OutsideError where a writer locks it for longer
    than ``wait_s``.
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
    """Copy a half written file of a killed writer. SQLite rolls the copy back when it opens it."""
    for suffix in ("", "-journal"):
        shutil.copyfile(path.with_name(path.name + suffix), copy.with_name(copy.name + suffix))


def require_current(database: Database, *, create: bool) -> None:
    """Make a missing history if ``create`` is set, and upgrade an older one.

    Raises UsageError for a missing one otherwise, for another program's database and for a newer
    perfci's history, and DamagedFile for a damaged one.
    """
    path = database.address.path
    if path is not None:
        _require_file(path, create=create)
    with database.reading() as connection:
        revision = _revision(connection)
        if revision is None:
            _require_ours(connection, database.address, create=create)
    if revision == REVISION:
        return
    _require_known(revision, database.address)
    database.writing(upgrade)


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations up to ``revision`` in the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":  # a second process waits here
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


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
        raise damaged(path, "it is empty, and perfci never leaves a history so")


def _make(path: Path) -> None:
    """Make the file under another name and link it, so that it is never seen half made."""
    made = path.with_name(f".{path.name}-{secrets.token_hex(6)}.making")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.touch(exist_ok=False)
    except OSError as error:
        raise _unopened(path, error) from error
    database = Database(file_address(made))
    try:
        database.writing(upgrade)
        database.close()
        os.link(made, path)
    except FileExistsError:
        pass  # another process was quicker
    except OSError:
        made.replace(path)  # a file system without hard links
        return
    finally:
        database.close()
        made.unlink(missing_ok=True)


def _revision(connection: Connection) -> str | None:
    """Return the database's revision, or None where it has no table of revisions."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    query = text(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 (a constant)
    rows = connection.execute(query).scalars().all()
    return str(rows[0]) if len(rows) == 1 else ""


def _require_ours(connection: Connection, address: HistoryAddress, *, create: bool) -> None:
    """Raise UsageError for a file that is no history, or a PostgreSQL history that is missing."""
    if address.path is not None:
        tables = inspect(connection).get_table_names()
        held = f"it holds {', '.join(tables[:3])}" if tables else "it holds no tables"
        raise NoHistory(
            "no-history",
            f"{address.path} is a SQLite database, and no history of perfci's: {held}",
            "Name another file.",
        )
    if not create:
        raise _missing(address.shown)


def _require_known(revision: str | None, address: HistoryAddress) -> None:
    if revision is None or revision in {f"{n:04}" for n in range(1, int(REVISION) + 1)}:
        return
    if revision.isdecimal() and revision > REVISION:
        raise UsageError(
            "newer-history",
            f"{address.shown} was written by a newer perfci: its revision is {revision} and this "
            f"one knows {REVISION}",
            "Update perfci; the history is left as it is.",
        )
    raise DamagedFile(
        "damaged-history",
        f"the history {address.shown} has the revision {revision!r}, which no perfci writes",
        "Restore it from a copy; it is left as it is.",
    )


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
