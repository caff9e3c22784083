"""A history's revision: brought up to this perfci's on opening; an unknown one is refused."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sqlalchemy import URL, Connection, inspect, text

from perfci.errors import DamagedFile, OutsideError, UsageError
from perfci.history.address import Address
from perfci.history.database import Database
from perfci.history.schema import MIGRATION_LOCK, REVISION, VERSION_TABLE
from perfci.history.trouble import damaged

MIGRATIONS = Path(__file__).with_name("migrations")


def require_current(database: Database, *, create: bool) -> None:
    """Make the history where it is missing and ``create`` says so; upgrade an older one.

    UsageError for a missing one that isn't to be made, for another program's and for a newer
    perfci's; DamagedFile for a damaged one.
    """
    path = database.address.path
    if path is not None:
        _require_file(path, create=create)
    with database.reading() as connection:
        found = _revision(connection)
        if found is None:
            _require_ours(connection, database.address, create=create)
    if found == REVISION:
        return
    _require_known(found, database.address)
    database.writing(upgrade)


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations up to ``revision`` in the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":  # a second process waits here, and has no work
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
        raise UsageError(
            "no-history", f"{path} is no file", "Name a file, or one that doesn't exist yet."
        )
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _unopened(path, error) from error
    if size == 0:
        raise damaged(path, "it is empty, and perfci never leaves a history so")


def _make(path: Path) -> None:
    """Make the file under another name first: it is never seen half made, nor made twice."""
    made = path.with_name(f".{path.name}-{secrets.token_hex(6)}.making")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.touch(exist_ok=False)
    except OSError as error:
        raise _unopened(path, error) from error
    database = Database(_at(made))
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


def _at(path: Path) -> Address:
    return Address(URL.create("sqlite+pysqlite", database=str(path)), path, str(path))


def _revision(connection: Connection) -> str | None:
    """Return the revision that the database says it has; None where it has no such table."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all()  # noqa: S608 (a constant)
    return str(found[0]) if len(found) == 1 else ""


def _require_ours(connection: Connection, address: Address, *, create: bool) -> None:
    """A database without a revision: not made yet in a PostgreSQL, and no history in a file."""
    if address.path is not None:
        tables = inspect(connection).get_table_names()
        held = f"it holds {', '.join(tables[:3])}" if tables else "it holds no tables"
        raise UsageError(
            "no-history",
            f"{address.path} is a SQLite database, and no history of perfci's: {held}",
            "Name another file.",
        )
    if not create:
        raise _missing(address.shown)


def _require_known(found: str | None, address: Address) -> None:
    if found is None or found in _known():
        return
    if found.isdecimal() and found > REVISION:
        raise UsageError(
            "newer-history",
            f"{address.shown} was written by a newer perfci: its revision is {found} and this "
            f"one knows {REVISION}",
            "Update perfci; the history is left as it is.",
        )
    raise DamagedFile(
        "damaged-history",
        f"the history {address.shown} has the revision {found!r}, which no perfci writes",
        "Restore it from a copy; it is left as it is.",
    )


def _known() -> tuple[str, ...]:
    return tuple(f"{number:04}" for number in range(1, int(REVISION) + 1))


def _missing(shown: str) -> UsageError:
    return UsageError(
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
