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

_COMPANIONS = ("", "-journal", "-wal", "-shm")
"""Suffixes of a database and of the files that SQLite has next to it."""


@dataclass(frozen=True, slots=True)
class HistoryAddress:
    """Address of a history. ``path`` is None for PostgreSQL, ``shown`` hides secrets."""

    url: URL
    path: Path | None
    shown: str
    secrets: tuple[str, ...] = ()

    def scrubbed(self, text: str) -> str:
        """Return a message of the database on one line, without the password."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())


def parse_address(url_or_path: str) -> HistoryAddress:
    """Return the address that ``url_or_path`` names.

    Raises UsageError for anything else. Its message never repeats a password.
    """
    if "://" not in url_or_path:
        return file_address(expanded(url_or_path))
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url_or_path.encode()  # SQLAlchemy shows an address as UTF-8
        url = make_url(url_or_path)
    except (ArgumentError, ValueError):
        raise _unclear(
            "it can't be read as an address"
        ) from None  # the errors may repeat a password
    if url.drivername not in {"postgres", "postgresql", "postgresql+psycopg"}:
        raise _unclear(f"perfci keeps histories in files and PostgreSQL, not `{url.drivername}`")
    if "@" in (url.host or ""):
        raise _unclear("its password or host contains an @")
    if not url.database:
        raise _unclear("no database is named")
    passwords = (value for name, value in url.query.items() if "password" in name)
    return HistoryAddress(
        url.set(drivername="postgresql+psycopg"),
        None,
        url.set(drivername="postgresql", query={}).render_as_string(hide_password=True),
        tuple(str(secret) for secret in (url.password, *passwords) if secret),
    )


def files_at(url_or_path: str) -> tuple[Path, ...]:
    """Return the history's file and the files that SQLite puts next to it. A server has none."""
    if "://" in url_or_path:
        return ()
    path = expanded(url_or_path).absolute()
    target = Path(os.path.realpath(path))  # SQLite follows links
    return tuple(
        file.with_name(f"{file.name}{suffix}") for file in (path, target) for suffix in _COMPANIONS
    )


def own_file(project: str) -> Path:
    """Return the file of the user's own history of ``project``."""
    from platformdirs import user_data_path

    return user_data_path("perfci") / "history" / f"{project}.sqlite"


def file_address(path: Path) -> HistoryAddress:
    """Return the address of the SQLite file at ``path``."""
    from sqlalchemy import URL

    path = path.absolute()
    return HistoryAddress(URL.create("sqlite+pysqlite", database=str(path)), path, str(path))


def _unclear(why: str) -> UsageError:
    return UsageError(
        "history-address",
        f"the history's address is not usable: {why}",
        "Write a path, or postgresql://user@host/database; characters such as @ : / in a password "
        "are written %40 %3A %2F there, and PGPASSWORD or ~/.pgpass keep it out of the address.",
    )
