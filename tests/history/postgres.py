"""A real PostgreSQL server for the tests: its socket and all else in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FOLDERS = (
    *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
    Path("/usr/local/pgsql/bin"),
    Path("/usr/local/bin"),
    Path("/usr/bin"),
)
PASSWORD = "pa:ss/wo@rd"


def binaries() -> Path | None:
    """Return the folder with PostgreSQL's server, if there is one."""
    needed = ("initdb", "pg_ctl", "postgres")
    return next((one for one in FOLDERS if all((one / name).exists() for name in needed)), None)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs. Nothing is flushed to disk: the tests end processes, not the machine."""

    folder: Path
    bin: Path
    user: str | None

    def url(self, database: str = "postgres", user: str = "perfci") -> str:
        return f"postgresql://{user}:pa%3Ass%2Fwo%40rd@/{database}?host={self.folder}"

    def control(self, *arguments: str) -> None:
        subprocess.run(
            [self.bin / "pg_ctl", "--pgdata", self.folder / "data", "--wait", *arguments],
            cwd=self.folder,
            user=self.user,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def start(self) -> None:
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off"
        options += " -c shared_buffers=32MB -c max_connections=40"
        self.control("--options", options, "--log", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        self.control("--mode", mode, "stop")

    def run(self, statement: str, schema: str = "public") -> list[tuple]:
        import psycopg

        with psycopg.connect(self._within(schema), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def database(self, name: str) -> str:
        """Return the address of a new, empty schema: a database would be 7 MB and a second."""
        self.run(f'CREATE SCHEMA "{name}"')
        return self._within(name)

    def _within(self, schema: str) -> str:
        return f"{self.url()}&options=-csearch_path%3D{schema}"


@contextmanager
def server(bin_folder: Path) -> Iterator[Server]:
    """Yield a running server. It refuses to run as root, so root lends it another user."""
    user = _unprivileged() if os.getuid() == 0 else None
    # a socket's path has to be short, which pytest's folders are not
    folder = Path(tempfile.mkdtemp(prefix="perfci-pg-", dir="/tmp"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        subprocess.run(
            [
                bin_folder / "initdb",
                *("--pgdata", folder / "data", "--username", "perfci", "--auth", "scram-sha-256"),
                *("--pwfile", secret, "--encoding", "UTF8", "--locale", "C", "--no-sync"),
            ],
            cwd=folder,
            user=user,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        running = Server(folder, bin_folder, user)
        running.start()
        try:
            yield running
        finally:
            running.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> str:
    names = {one.pw_name for one in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)
