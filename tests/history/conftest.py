"""Histories to test with: in a file, and on a real PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.history.postgres import Server, binaries, server
from tests.lacking import lacking


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of the tests' own."""
    with server(_binaries()) as running:
        yield running


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that a test may stop."""
    with server(_binaries()) as running:
        yield running


def _binaries() -> Path:
    folder = binaries()
    if folder is None:
        lacking("PostgreSQL's initdb, pg_ctl and postgres are not installed")
    return folder


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one: processes are killed, the machine stays up."""
    memory = Path("/dev/shm")
    folder = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> str:
    """Where a new history can be, in each kind of database."""
    if request.param == "sqlite":
        folder: Path = request.getfixturevalue("quick_folder")
        return str(folder / "history.sqlite")
    running: Server = request.getfixturevalue("postgres")
    return running.database(f"test_{uuid.uuid4().hex}")
