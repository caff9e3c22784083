"""A copy of a history's file as it was at one moment, without changing the file."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

from perfci.history.database import WAIT_S
from perfci.history.trouble import of_sqlite


def copy_file(path: Path, copy: Path, wait_s: float = WAIT_S) -> None:
    """Copy the SQLite database at ``path``. Who writes into it meanwhile is waited for.

    DamagedFile where it is no database, and OutsideError where it is locked for longer than
    ``wait_s``.
    """
    import sqlite3

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
