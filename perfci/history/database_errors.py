"""Translate the errors of databases: who holds the lock, what is damaged, what was lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfci.errors import DamagedFile, OutsideError, PerfciError, UsageError
from perfci.history.schema import MIGRATION_LOCK, NotPacked

if TYPE_CHECKING:
    from perfci.history.database import Database

_REFUSING_STATES = {"28P01", "28000", "3D000"}
_REFUSED = re.compile(
    r"does not exist|no pg_hba\.conf entry|authentication failed|is not permitted to log in"
    r"|permission denied for database|is not currently accepting connections"
)
_UNUSABLE = re.compile(r"invalid port number|invalid \w+ value|invalid connection option")
"""Texts of a failed connection, which has no code. Texts of a server in another language are
retried, and then shown."""
_LOCKED = {"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_BUSY_SNAPSHOT", "SQLITE_BUSY_RECOVERY"}
_DAMAGED = {"SQLITE_CORRUPT", "SQLITE_NOTADB"}
_UNWRITABLE = {"SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"}
_LOST = {"57P01", "57P02", "57P03", "08000", "08003", "08006"}
_HOLDERS = """
    SELECT DISTINCT activity.pid, activity.application_name, activity.client_addr
    FROM pg_locks AS held
    JOIN pg_stat_activity AS activity ON activity.pid = held.pid
    LEFT JOIN pg_class AS table_of ON table_of.oid = held.relation
    WHERE held.granted AND held.pid <> pg_backend_pid()
      AND (table_of.relname LIKE 'perfci\\_%%'
           OR held.locktype = 'advisory' AND (held.classid, held.objid) = (%s, %s))
"""


@contextmanager
def translated(database: Database) -> Iterator[None]:
    """Raise the database's errors as perfci's. The original is the ``__cause__``."""
    import sqlite3

    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        raise _of_driver(database, error.orig or error) from error
    except sqlite3.Error as error:  # from a cursor of the driver's own, in bulk reading
        raise _of_driver(database, error) from error
    except NotPacked as error:
        if database.address.path is not None:
            raise damaged(database.address.path, str(error)) from error
        raise _of_postgresql(database, error) from error


def is_refused(error: BaseException) -> bool:
    """Return whether the server refused this user, or libpq can't read the address.

    Trying again would be refused again. Any other error may be a server that is starting.
    """
    import psycopg

    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is not None:
        return error.sqlstate in _REFUSING_STATES
    message, attempt = str(error), error.pgconn
    lacks_password = attempt is not None and attempt.needs_password
    return lacks_password or bool(_UNUSABLE.search(message) or _REFUSED.search(message))


def is_lost(error: BaseException) -> bool:
    """Return whether a PostgreSQL server went away, or isn't back yet."""
    import psycopg

    return (
        isinstance(error, psycopg.OperationalError)
        and (error.sqlstate is None or error.sqlstate in _LOST)
        and not is_refused(error)
    )


def is_momentary(error: BaseException) -> bool:
    """Return whether the database gave way to another writer.

    It was a deadlock, or pruning removed a document that the run was going to refer to.
    """
    return _state(error) in {"40001", "40P01", "23503"}


def _of_driver(database: Database, error: BaseException) -> PerfciError:
    if database.address.path is not None:
        return of_sqlite(database.address.path, database.wait_s, error)
    return _of_postgresql(database, error)


def of_sqlite(path: Path, wait_s: float, error: BaseException) -> PerfciError:
    """Return SQLite's error as perfci's."""
    name = getattr(error, "sqlite_errorname", "")
    kind = "_".join(name.split("_")[:2])
    if name in _LOCKED or kind in _LOCKED:
        return OutsideError(
            "history-locked",
            f"{path} was locked for {wait_s:g} s by {holders_of_file(path)}",
            "Wait until that has ended, or end it, and run this again: recording twice is safe.",
        )
    if kind in _DAMAGED or (not name and "decode" in str(error)):  # Python's own, on reading text
        return damaged(path, str(error))
    if kind in _UNWRITABLE:
        return OutsideError(
            "history-unwritable",
            f"{path} can't be opened for writing: {error}",
            "Give this user the right to write the file and its folder, or name another.",
        )
    return OutsideError(
        "history-failed",
        f"{path}: {error}",
        "Look for room on that disk, and run this again; every run that is recorded is whole.",
    )


def damaged(path: Path, why: str) -> DamagedFile:
    """Return the error for a damaged history."""
    return DamagedFile(
        "damaged-history",
        f"the history {path} is damaged: {why}",
        "Restore it from a copy, or move it away and import an export; it is left as it is.",
    )


def holders_of_file(path: Path) -> str:
    """Describe the other processes that have ``path`` open, as far as this user may see."""
    import os

    import psutil

    holders = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and any(
                Path(file.path) == path.resolve() for file in process.open_files()
            ):
                holders.append(f"process {process.pid} ({_command(process)})")
        except psutil.Error:
            continue  # it has ended, or is another user's
    unseen = "a process that can't be seen from here: another user's or machine's"
    return ", ".join(holders) or unseen


def _command(process: Any) -> str:
    return " ".join(process.cmdline())[:120] or str(process.name())


def _of_postgresql(database: Database, error: BaseException) -> PerfciError:
    shown, state = database.address.shown, _state(error)
    message = database.address.scrubbed(" ".join(str(error).split()))
    if state == "55P03":
        return OutsideError(
            "history-locked",
            f"{shown} was locked for {database.wait_s:g} s by {_holders_in_server(database)}",
            "Wait until that has ended, or end it, and run this again: recording twice is safe.",
        )
    if is_refused(error):
        return UsageError(
            "history-refused",
            f"{shown} doesn't let perfci in: {message}",
            "Check the address, its port, the user and the password (PGPASSWORD or ~/.pgpass).",
        )
    if is_lost(error):
        return OutsideError(
            "history-lost",
            f"{shown} can't be reached, or the connection was lost: {message}",
            "See that the server runs, and run this again: recording twice is safe, and what "
            "wasn't recorded whole isn't there at all.",
        )
    return OutsideError(
        "history-failed", f"{shown}: {message}", "Every run that is recorded is whole."
    )


def _holders_in_server(database: Database) -> str:
    """Describe the lock's holders, over a new connection. The one that waited has failed."""
    import psycopg

    url = database.address.url.set(drivername="postgresql")
    try:
        with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
            rows = connection.execute(_HOLDERS, divmod(MIGRATION_LOCK, 1 << 32)).fetchall()
    except psycopg.Error:
        rows = []
    holders = [
        f"server process {pid} ({name or 'no name'}, from {address or 'the same machine'})"
        for pid, name, address in rows
    ]
    return ", ".join(holders) or "a transaction that has just ended"


def _state(error: BaseException) -> str | None:
    return getattr(error, "sqlstate", None)
