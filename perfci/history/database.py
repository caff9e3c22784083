"""A history's database: its tables, transactions, locks, retries, creation on opening, and errors.

Names of tables begin with ``perfci_``, because a team's PostgreSQL holds other things as well. The
database gives numbers to documents. They are never shown or exported.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, OperationalError

from perfci.errors import DamagedFile, OutsideError, PerfciError, UsageError
from perfci.history.address import HistoryAddress, file_address
from perfci.model.case import Direction
from perfci.model.run import Environment
from perfci.version import VERSION

T = TypeVar("T")
WAIT_S = 60.0
"""Time to wait for a lock of another process."""
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Pauses before each further attempt to write, after a lost connection or a deadlock."""
_LOCK_TIMEOUT = "55P03"
_WRITES = "perfci_writes"
"""Execution option of a transaction that writes. SQLite then takes the write lock at its start."""
# psycopg also logs the errors that it raises for a dying server: users would see them twice
logging.getLogger("psycopg").addHandler(logging.NullHandler())

SCHEMA = 3
"""Number of this schema. It changes with the tables: a history of another number is refused."""
CREATION_LOCK = 7_305_410_326
"""Number of the advisory lock that a PostgreSQL server gives to one creator of tables at a time."""

metadata = sa.MetaData()
schema = sa.Table(
    "perfci_schema",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("project", sa.Text),
)
"""One row: the schema's number, and the project that first recorded here. Series don't name a
project, or every query would have to."""
documents = sa.Table(
    "perfci_documents",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
"""A ``Document`` as JSON, stored once, because it is mostly the same from run to run."""
runs = sa.Table(
    "perfci_runs",
    metadata,
    *(
        sa.Column(name, sa.Text, nullable=False)
        for name in ("source", "sha", "subject", "branch", "committed_at", "measured_at", "runner")
    ),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("position", sa.Integer),
    sa.Column("environment", sa.Text, nullable=False, index=True),
    sa.Column("document", sa.ForeignKey("perfci_documents.number"), nullable=False),
    sa.Column("packed", sa.LargeBinary, nullable=False),
)
"""``packed`` has the float64 of the document's ``series``, in their order. A report reads all
points, and reading a row for each of 36 million takes 16 s."""
AS_MEASURED = (runs.c.measured_at, runs.c.id)
"""The order of measuring. Runs of the same second have the same order in every database."""
known_changes = sa.Table(
    "perfci_known_changes",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    *(
        sa.Column(name, sa.Text, nullable=False)
        for name in (
            "environment", "case", "metric", "sha_before", "sha_after", "first_seen_at", "note",
        )
    ),
    *(
        sa.Column(name, sa.Boolean, nullable=False)
        for name in ("worse", "acknowledged", "withdrawn")
    ),
    sa.Column("event", sa.Text, nullable=False, index=True),
)  # fmt: skip


class NotPacked(ValueError):
    """Content of the database that perfci can't have written."""


class SeriesName(NamedTuple):
    """The identity of a series within its environment."""

    case: str
    metric: str
    unit: str
    direction: Direction


class Document(msgspec.Struct, frozen=True):
    """Everything about a run that the next run mostly repeats."""

    environment: Environment
    source_hashes: dict[str, str]
    failed: dict[str, str]
    series: tuple[SeriesName, ...]


def document(content: bytes | None) -> Document:
    """Return the content of a row of ``documents``. NotPacked if the row is missing or damaged."""
    try:
        return msgspec.json.decode(content or b"", type=Document)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotPacked("a run's document is missing or damaged") from error


def pack(values: Sequence[float]) -> bytes:
    """Return values as little-endian float64."""
    return struct.pack(f"<{len(values)}d", *values)


def require_packed(values: bytes, series: Sequence[SeriesName]) -> bytes:
    """Return ``values``. NotPacked unless there is one for each of ``series``."""
    if len(values) != 8 * len(series):
        raise NotPacked("a run's points are cut short")
    return values


def unpack(values: bytes, series: Sequence[SeriesName]) -> dict[SeriesName, float]:
    """Return the value of each of ``series``, from what ``pack`` packed."""
    numbers = struct.unpack(f"<{len(series)}d", require_packed(values, series))
    return dict(zip(series, numbers, strict=True))


class Database:
    """The connections to a history. Statements run inside ``reading`` or ``writing``."""

    def __init__(self, address: HistoryAddress, wait_s: float = WAIT_S) -> None:
        self.address = address
        self._engine = _engine(address, wait_s)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Yield a connection that sees one state of the history. Raises perfci's errors.

        A SQLite transaction sees one state by default. A PostgreSQL transaction needs another
        isolation level than its default, or it would see runs that other processes record between
        two statements.
        """
        engine = self._engine
        if self.address.path is None:
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with _translating(self.address), engine.begin() as connection:
            yield connection

    def writing(self, work: Callable[[sa.Connection], T]) -> T:
        """Return the result of ``work``, which runs in one transaction.

        ``work`` runs again after PostgreSQL lost a connection or broke a deadlock. The first
        attempt may have been committed, so ``work`` must be idempotent.
        """
        engine = self._engine.execution_options(**{_WRITES: True})
        for pause_s in (*PAUSES_S, None):
            try:
                with _translating(self.address), engine.begin() as connection:
                    return work(connection)
            except OutsideError as error:
                if pause_s is None or self.address.path or not _may_pass(error.__cause__):
                    raise
                time.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")


def _may_pass(error: BaseException | None) -> bool:
    """Return whether an error of PostgreSQL may pass. A lock was waited for already."""
    locked = getattr(getattr(error, "orig", None), "sqlstate", None) == _LOCK_TIMEOUT
    return isinstance(error, OperationalError) and not locked


def _engine(address: HistoryAddress, wait_s: float) -> sa.Engine:
    if address.path is not None:
        engine = sa.create_engine(address.url, connect_args={"timeout": wait_s})
        # without this, Python's sqlite3 would begin transactions itself
        sa.event.listen(engine, "connect", lambda raw, _: setattr(raw, "isolation_level", None))
        sa.event.listen(engine, "begin", _begin)
        return engine
    name = f"perfci {VERSION} on {platform.node()}, process {os.getpid()}"
    given = {"connect_timeout": 10, "application_name": name} | dict(address.url.query)
    # pinged before use: the server may have restarted during a build
    engine = sa.create_engine(address.url, connect_args=given, pool_size=1, pool_pre_ping=True)

    def wait_for_locks(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {round(wait_s * 1000)}")
        connection.commit()

    sa.event.listen(engine, "connect", wait_for_locks)
    return engine


def _begin(connection: sa.Connection) -> None:
    """Take the write lock before reading. Two writers that read first would block each other."""
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def insert_into(connection: sa.Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
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
        names = sa.inspect(connection).get_table_names()
        number = None
        if schema.name in names:
            number = connection.execute(sa.select(schema.c.number)).scalar()
        if number != SCHEMA and address.path is not None:
            report = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one())
            if report != "ok":
                raise damaged(address.shown, " ".join(report.split()))
    if number == SCHEMA:
        return
    if runs.name in names:
        raise UsageError(
            "other-schema",
            f"the history {address.shown} has the schema {number}, and this perfci reads {SCHEMA}",
            "Write it to a file with the perfci that made it, `perfci history export FILE`, "
            "and import the file into a new history: `perfci history import FILE`.",
        )
    if address.path is not None:
        held = f"it holds {', '.join(names[:3])}" if names else "it holds no tables"
        raise UsageError(
            "no-history",
            f"{address.path} is a SQLite database but not a perfci history: {held}",
            "Name another file.",
        )
    if not create:
        raise _missing(address.shown)
    database.writing(_create_tables)


def _create_tables(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":  # a second process waits here
        lock = {"lock": CREATION_LOCK}
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), lock)
    metadata.create_all(connection)
    number = insert_into(connection, schema).values(number=SCHEMA)
    connection.execute(number.on_conflict_do_nothing(index_elements=["number"]))


def _require_file(path: Path, *, create: bool) -> None:
    try:
        if create and not os.path.lexists(path):
            _make(path)
        if path.stat().st_size == 0:
            raise damaged(str(path), "the file is empty")
    except FileNotFoundError as error:
        raise _missing(str(path)) from error
    except OSError as error:
        raise OutsideError(
            "history-failed",
            f"the history {path} can't be opened: {error.strerror}",
            "Choose another path with --history, or give this user the right to write there.",
        ) from error
    if not path.is_file():
        raise UsageError(
            "no-history", f"{path} is not a file", "Name a file, or one that doesn't exist yet."
        )


def _make(path: Path) -> None:
    """Create the file under another name, then link it, so that it is never seen half-written."""
    made = path.with_name(f".{path.name}-{secrets.token_hex(6)}.making")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = Database(file_address(made))
        database.writing(_create_tables)
        database.close()
        os.link(made, path)
    except FileExistsError:  # another process was quicker
        pass
    finally:
        made.unlink(missing_ok=True)


def _missing(shown: str) -> UsageError:
    return UsageError(
        "no-history",
        f"history not found: {shown}",
        "`perfci run --record` creates one; --history, PERFCI_HISTORY or `history` in "
        "[tool.perfci] say where it is.",
    )


@contextmanager
def _translating(address: HistoryAddress) -> Iterator[None]:
    """Raise the database's errors as perfci's. The original is the ``__cause__``."""
    try:
        yield
    except DBAPIError as error:
        raise _as_perfcis(address, error) from error
    except NotPacked as error:
        raise damaged(address.shown, str(error)) from error


def _as_perfcis(address: HistoryAddress, error: DBAPIError) -> PerfciError:
    message = address.scrubbed(str(error.orig))
    name = getattr(error.orig, "sqlite_errorname", "")
    # the second is Python's own error, on a text of the database
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or "Could not decode" in message:
        return damaged(address.shown, message)
    return OutsideError(
        "history-failed",
        f"the history {address.shown} can't be used: {message}",
        "Once that is mended, run this again: recording twice is safe, and every run that is "
        "recorded is whole.",
    )


def damaged(shown: str, why: str) -> DamagedFile:
    """Return the error for a damaged history."""
    return DamagedFile(
        "damaged-file",
        f"the history {shown} is damaged: {why}",
        "Restore it from a copy, or move it away and import an export. perfci doesn't change it.",
    )
