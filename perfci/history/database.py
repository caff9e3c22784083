"""One history's connection: address, transactions, locks, retries, migrations on opening."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, insert, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from perfci.errors import DamagedFile, NoHistory, OutsideError, UsageError
from perfci.files import expanded
from perfci.history.schema import MIGRATION_LOCK, REVISION, VERSION_TABLE
from perfci.history.trouble import damaged, is_lost, is_momentary, of_sqlite, translated
from perfci.version import VERSION

if TYPE_CHECKING:
    from sqlalchemy import URL

T = TypeVar("T")
WAIT_S = 60.0
"""How long another's lock is waited for."""
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Before each further try to write over a lost connection."""
_CONNECT_S = 10
_WRITES = "perfci_writes"
_COMPANIONS = ("-journal", "-wal", "-shm")
"""What SQLite puts beside a file while it is written to, or its writer was killed."""
_HARMLESS = {
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "gssencmode",
    "host",
    "hostaddr",
    "keepalives",
    "port",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
}
"""Parameters of an address that may be shown; any other may hold a secret."""
_SHORT = 3
"""Values of other parameters that are no longer than that are numbers, and no secrets."""
_ADVICE = (
    "Write a path, or postgresql://user@host/database; characters such as @ : / in a password "
    "are written %40 %3A %2F there, and PGPASSWORD or ~/.pgpass keep it out of the address."
)


# what psycopg logs of a dying server, the error that it raises says, too: not on a user's screen
logging.getLogger("psycopg").addHandler(logging.NullHandler())


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


@dataclass(frozen=True, slots=True)
class Address:
    """``path`` is None for PostgreSQL. ``shown`` names it without what may be secret."""

    url: URL
    path: Path | None
    shown: str
    secrets: tuple[str, ...] = ()

    def scrubbed(self, text: str) -> str:
        """Return a database's message without the password, however it got there."""
        for secret in sorted(self.secrets, key=len, reverse=True):  # one may be part of another
            text = text.replace(secret, "***")
        return text


def parse_address(url_or_path: str) -> Address:
    """Return what ``url_or_path`` names.

    UsageError, which never repeats a password, for what is neither.
    """
    if "://" not in url_or_path:
        return _file(_path(url_or_path))
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url_or_path.encode()  # SQLAlchemy shows an address as UTF-8
        url = make_url(url_or_path)
    except (ArgumentError, ValueError):
        raise _unclear("it can't be read as an address") from None  # they may repeat a password
    kind = url.drivername.partition("+")[0]
    if kind == "sqlite":
        if not url.database or url.query or url.database.startswith(":"):
            raise _unclear("a SQLite history is a file: sqlite:///folder/history.sqlite")
        return _file(Path(url.database))
    if kind not in {"postgres", "postgresql"} or url.drivername not in {
        kind,
        f"{kind}+psycopg",
    }:
        raise _unclear(f"perfci keeps histories in SQLite and PostgreSQL, not `{url.drivername}`")
    return _postgresql(url.set(drivername="postgresql+psycopg"))


def files_at(url_or_path: str) -> tuple[Path, ...]:
    """Return the file of the history that ``url_or_path`` names and what SQLite puts beside it.

    None for a database of a server, whether its address can be used or not.
    """
    if "://" in url_or_path and not url_or_path.startswith("sqlite"):
        return ()
    plain = "://" not in url_or_path  # a compare asks, and has no use for SQLAlchemy
    path = _path(url_or_path) if plain else parse_address(url_or_path).path
    if path is None:
        return ()
    target = Path(os.path.realpath(path))  # SQLite follows a link, and puts them there
    beside = (one.with_name(f"{one.name}{end}") for one in {path, target} for end in _COMPANIONS)
    return (path, *beside)


def own_file(project: str) -> Path:
    """Return the history of ``project`` in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("perfci") / "history" / f"{project}.sqlite"


def shared_file() -> Path:
    """Return where an older perfci kept the history of all projects."""
    from platformdirs import user_data_path

    return user_data_path("perfci") / "history.sqlite"


def _path(written: str) -> Path:
    return expanded(written).absolute()


def _file(path: Path) -> Address:
    from sqlalchemy import URL

    path = path.absolute()
    return Address(URL.create("sqlite+pysqlite", database=str(path)), path, str(path))


def _postgresql(url: URL) -> Address:
    if "@" in (url.host or ""):
        raise _unclear("there is an @ in its password or its host")
    if not url.database:
        raise _unclear("no database is named")
    secrets = [str(url.password)] if url.password else []
    hidden = set(url.query) - _HARMLESS
    for name in hidden:
        given = url.query[name]
        values = [given] if isinstance(given, str) else given
        secrets += [value for value in values if len(value) > _SHORT or "password" in name]
    shown = url.difference_update_query(hidden).set(drivername="postgresql")
    return Address(
        url, None, shown.render_as_string(hide_password=True), tuple(filter(None, secrets))
    )


def _unclear(why: str) -> UsageError:
    return UsageError("history-address", f"the history's address is not usable: {why}", _ADVICE)


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
        raise NoHistory(
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
