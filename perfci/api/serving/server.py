"""``perfci.server``: one side's server, started in set-up, gone with the worker."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlsplit

from perfci.api.command import all_of
from perfci.api.definition import user_frame
from perfci.clock import monotonic
from perfci.errors import BenchmarkError, Unusable

_HOST = "127.0.0.1"
_TIED = str(Path(__file__).with_name("tied.py"))
_PAUSE_S = 0.01
_ANSWER_S = 2.0
_LAST_LINES, _LONGEST_LINE = 10, 500
_ERRORS = 400
"""A status from here on is no answer of a server that is ready."""
_STARTED: list[Server] = []


def started_server(
    command: Sequence[str | os.PathLike[str]],
    *,
    ready: str | None,
    timeout: float,
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None,
) -> Server:
    """Start the server of ``perfci.server``. Unusable where it ends or isn't ready in time.

    So, too, where another one answers for it already: both sides would measure that one.
    """
    if wrong := next(_wrongs(command, ready, timeout, cwd, env), ""):
        raise BenchmarkError(
            "bad-command",
            f"{user_frame()}: perfci.server: {wrong}",
            'Write perfci.server([sys.executable, "-m", "serve", "--port", "{port}"], '
            'ready="/health"): docs/serving.md.',
        )
    if ready and _is_url(ready) and "{port}" not in ready and _answers(ready):
        raise Unusable(
            "port_in_use",
            f"{ready} answers before the server was started: another one, perhaps the other "
            "side's, has its port. Write `{port}` in the command and in `ready` in its place: each "
            "side gets one of its own",
        )
    port = _free_port()
    words = [os.fspath(word).replace("{port}", str(port)) for word in command]
    sys.audit("perfci.command", words[0])
    process = subprocess.Popen(
        [sys.executable, "-P", _TIED, str(os.getpid()), *words],
        cwd=cwd,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {}), "PORT": str(port), **_mark()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    started = Server(f"http://{_HOST}:{port}", port, shlex.join(words), process, Output(process))
    try:
        started.await_ready(_check(ready, started), timeout)
    except BaseException:
        process.kill()
        raise
    _STARTED.append(started)
    return started


def _wrongs(command: Any, ready: Any, timeout: Any, cwd: Any, env: Any) -> Iterator[str]:
    """Yield what is wrong with the arguments, and what would be right."""
    if not all_of(command, str, os.PathLike) or "" in list(command)[:1]:
        yield f"the command is {command!r}; give a list: the program and its arguments"
    if ready is not None and not (isinstance(ready, str) and ready):
        text = "a path, a URL or a text that the server prints"
        yield f"`ready` is {ready!r}; give {text}, or leave it out"
    if not isinstance(timeout, (int, float)) or not timeout > 0:
        yield f"`timeout` is {timeout!r}; give a time in s: more than 0"
    if cwd is not None and not (isinstance(cwd, (str, os.PathLike)) and Path(cwd).is_dir()):
        yield f"`cwd` is {cwd!r}; give a folder that is in this side's tree, {Path.cwd()}"
    if env and not (isinstance(env, Mapping) and all_of([*env, *env.values()], str)):
        yield f"`env` is {env!r}; give texts by name"


def _mark() -> dict[str, str]:
    """Return the variable by which perfci ends a server's children that left its session.

    The kernel ends the server itself with this process, but not what asked for a session of its
    own. Outside of a session there is no mark, nor anybody to look for it.
    """
    token = os.environ.get("PERFCI_WORKER")
    return {"PERFCI_SERVER": token} if token else {}


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """A server that runs: its ``url``, without a slash at the end, and its ``port``."""

    url: str
    port: int
    command: str
    _process: subprocess.Popen[bytes]
    _output: Output

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def printed(self) -> str:
        """What it printed last, as far as that is kept."""
        return self._output.text()

    def await_ready(self, is_ready: Callable[[], bool], timeout: float) -> None:
        """Wait until it is ready; Unusable where it ends, or isn't in time."""
        until = monotonic() + timeout
        while not is_ready():
            if ended := self.ended():
                raise Unusable("server_ended", ended)
            if monotonic() > until:
                said = f"`{self.command}` was not ready within {timeout:g} s"
                raise Unusable("server_not_ready", f"{said}:\n{self._output.last_lines()}")
            sleep(_PAUSE_S)

    def ended(self) -> str:
        """Return how it ended, and its last lines; nothing while it runs."""
        code = self._process.poll()
        if code is None:
            return ""
        if code < 0:
            how = f"was ended by signal {-code} ({signal.strsignal(-code)})"
        else:
            how = f"ended with exit code {code}"
        self._output.wait()
        return f"`{self.command}` {how}:\n{self._output.last_lines()}"


def require_running() -> None:
    """Raise Unusable where a server of this process has ended, whoever answered for it."""
    for one in _STARTED:
        if ended := one.ended():
            said = f"requests were answered by something else, for the benchmark's server {ended}"
            raise Unusable("server_ended", said)


def ended_servers() -> list[str]:
    """Return how each server of this process has ended that does no longer run."""
    sleep(_PAUSE_S)  # its connections close a little before it can be waited for
    return [said for one in _STARTED if (said := one.ended())]


class Output:
    """Reads what a server prints, so that it never blocks, and keeps the end of it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 (asked for above)
        self._descriptor = process.stdout.fileno()
        self._chunks: deque[bytes] = deque(maxlen=64)
        self._thread = threading.Thread(target=self._run, name="perfci-server", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return what is kept."""
        return b"".join(self._chunks.copy()).decode("utf-8", "replace")

    def last_lines(self) -> str:
        """Return the last lines, none of them long."""
        lines = self.text().strip().splitlines()[-_LAST_LINES:]
        return "\n".join(one[:_LONGEST_LINE] for one in lines) or "it printed nothing"

    def wait(self) -> None:
        """Let the reader catch up; children of the server may hold the pipe open."""
        self._thread.join(0.2)

    def _run(self) -> None:
        while chunk := os.read(self._descriptor, 1 << 12):
            self._chunks.append(chunk)


def _check(ready: str | None, started: Server) -> Callable[[], bool]:
    """Return what says whether the server is ready."""
    if ready is None:
        return lambda: _takes_connections(started.port)
    if ready.startswith("/") or _is_url(ready):
        url = ready.replace("{port}", str(started.port))
        return lambda: _answers(url if _is_url(url) else started.url + url)
    return lambda: ready in started.printed


def _is_url(ready: str) -> bool:
    return ready.startswith(("http://", "https://"))


def _takes_connections(port: int) -> bool:
    try:
        socket.create_connection((_HOST, port), _ANSWER_S).close()
    except OSError:
        return False
    return True


def _answers(url: str) -> bool:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or _HOST, parts.port, timeout=_ANSWER_S)
    try:
        connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        return connection.getresponse().status < _ERRORS
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((_HOST, 0))
        port: int = taken.getsockname()[1]
    return port
