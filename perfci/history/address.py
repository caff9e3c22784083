"""Addresses of histories: a SQLite file or a PostgreSQL URL. SQLAlchemy is imported on demand."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.errors import UsageError
from perfci.files import expanded

if TYPE_CHECKING:
    from sqlalchemy import URL

_COMPANIONS = ("-journal", "-wal", "-shm")
"""Suffixes of the files that SQLite has next to a database while it is written, and after a writer
was killed."""
_SHORTEST_SECRET = 4
"""Characters from which an address's parameter may be a secret. Shorter ones are numbers."""
_ADVICE = (
    "Write a path, or postgresql://user@host/database; characters such as @ : / in a password "
    "are written %40 %3A %2F there, and PGPASSWORD or ~/.pgpass keep it out of the address."
)


@dataclass(frozen=True, slots=True)
class HistoryAddress:
    """Address of a history. ``path`` is None for PostgreSQL, ``shown`` hides secrets."""

    url: URL
    path: Path | None
    shown: str
    secrets: tuple[str, ...] = ()

    def scrubbed(self, text: str) -> str:
        """Return a message of the database without the password."""
        for secret in sorted(self.secrets, key=len, reverse=True):  # one may be part of another
            text = text.replace(secret, "***")
        return text


def parse_address(url_or_path: str) -> HistoryAddress:
    """Return the address that ``url_or_path`` names.

    Raises UsageError for anything else. Its message never repeats a password.
    """
    if "://" not in url_or_path:
        return file_address(_path(url_or_path))
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
        return file_address(Path(url.database))
    if kind not in {"postgres", "postgresql"} or url.drivername not in {
        kind,
        f"{kind}+psycopg",
    }:
        raise _unclear(f"perfci keeps histories in SQLite and PostgreSQL, not `{url.drivername}`")
    return _postgresql(url.set(drivername="postgresql+psycopg"))


def files_at(url_or_path: str) -> tuple[Path, ...]:
    """Return the history's file and the files that SQLite puts next to it.

    A server's database has no such files, even if its address can't be used.
    """
    is_url = "://" in url_or_path
    if is_url and not url_or_path.startswith("sqlite"):
        return ()
    # a plain path needs no SQLAlchemy, which takes long to import
    path = parse_address(url_or_path).path if is_url else _path(url_or_path)
    if path is None:
        return ()
    target = Path(os.path.realpath(path))  # SQLite follows links
    companions = (
        file.with_name(f"{file.name}{suffix}") for file in {path, target} for suffix in _COMPANIONS
    )
    return (path, *companions)


def own_file(project: str) -> Path:
    """Return the history of ``project`` in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("perfci") / "history" / f"{project}.sqlite"


def _path(written: str) -> Path:
    return expanded(written).absolute()


def file_address(path: Path) -> HistoryAddress:
    """Return the address of the SQLite file at ``path``."""
    from sqlalchemy import URL

    path = path.absolute()
    return HistoryAddress(URL.create("sqlite+pysqlite", database=str(path)), path, str(path))


def _postgresql(url: URL) -> HistoryAddress:
    if "@" in (url.host or ""):
        raise _unclear("there is an @ in its password or its host")
    if not url.database:
        raise _unclear("no database is named")
    secrets = [str(url.password)] if url.password else []
    for name, values in url.normalized_query.items():
        secrets += [
            value for value in values if len(value) >= _SHORTEST_SECRET or "password" in name
        ]
    shown = url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)
    return HistoryAddress(url, None, shown, tuple(filter(None, secrets)))


def _unclear(why: str) -> UsageError:
    return UsageError("history-address", f"the history's address is not usable: {why}", _ADVICE)
