"""``perfci.server``: a server that the work uses, one per side. It ends with its worker."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from time import sleep
from urllib.parse import urlsplit

from perfci.api import THREAD_VARIABLES, require
from perfci.api.children import ChildOutput, how_it_ended, last_words, tied_command
from perfci.clock import monotonic
from perfci.errors import Unusable

_HOST = "127.0.0.1"
_PAUSE_S = 0.01
_ANSWER_S = 2.0
"""Longest wait for a server's answer, when it is asked whether it is ready."""
_ERRORS = 400
"""Lowest HTTP status that means that a server isn't ready."""
_STARTED: list[Server] = []
"""The servers that this process has started."""
_CORES: set[int] = set()
"""The cores that this process had before it left some to its servers."""


def server(
    command: Sequence[str | os.PathLike[str]],
    *,
    ready: str | None = None,
    timeout: float = 60.0,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    client_cores: int = 1,
) -> Server:
    """Start a server for this side, and return it once it is ready. It ends with the worker.

    ``{port}`` in the command's words is a free port's number, which is ``PORT`` in its environment.
    ``ready`` is a path or URL that answers, or text in a line that it prints. Without it, the
    server is ready when the port takes connections. ``timeout`` is in s.

    This process, which makes the requests, keeps ``client_cores`` of its cores, and the server gets
    the others. They share all cores if there are no others, or if ``client_cores`` is 0.

    Raises Unusable if the server ends or isn't ready in time, or if another server already answers
    at its URL, which both sides would then measure.
    """
    require(
        not isinstance(command, str),
        "server",
        f"the command is {command!r}, and not a list",
        'Write perfci.server([sys.executable, "-m", "serve", "--port", "{port}"], '
        'ready="/health"): docs/serving.md.',
    )
    if ready and is_url(ready) and "{port}" not in ready and _answers(ready):
        raise Unusable(
            "port_in_use",
            f"{ready} answers before the server was started: another server, perhaps the other "
            "side's, uses its port. Write `{port}` for it in the command and in `ready`: each side "
            "gets its own",
        )
    with _on_server_cores(client_cores) as defaults:
        started = _started(command, cwd, {**os.environ, **defaults, **(env or {})})
    try:
        started.await_ready(ready, timeout)
    except BaseException:
        started._process.kill()  # noqa: SLF001 (users of a Server have no such method)
        raise
    _STARTED.append(started)
    return started


def _started(
    command: Sequence[str | os.PathLike[str]],
    cwd: str | os.PathLike[str] | None,
    environment: Mapping[str, str],
) -> Server:
    port = _free_port()
    words = [os.fspath(word).replace("{port}", str(port)) for word in command]
    process = subprocess.Popen(
        tied_command(words),
        cwd=cwd,
        env={**environment, "PORT": str(port)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None  # noqa: S101 (asked for above)
    output = ChildOutput(process.stdout)
    output.start()
    return Server(f"http://{_HOST}:{port}", port, shlex.join(words), process, output)


@contextmanager
def _on_server_cores(client_cores: int) -> Iterator[dict[str, str]]:
    """Be on the server's cores within the block. Yield its environment's defaults.

    A library with a thread for each of this process's cores would have more threads than cores.
    """
    defaults = {"PYTHONUNBUFFERED": "1"}
    if token := os.environ.get("PERFCI_WORKER"):
        # by it perfci finds and ends children of the server that are in sessions of their own
        defaults["PERFCI_SERVER"] = token
    cores = sorted(_CORES or os.sched_getaffinity(0))
    client, others = cores[:client_cores], cores[client_cores:]
    if not client or not others:
        yield defaults
        return
    _CORES.update(cores)  # a second server shares them with the first
    for name in THREAD_VARIABLES:
        if (threads := os.environ.get(name, "")).isdigit():
            defaults[name] = str(min(int(threads), len(others)))
    os.sched_setaffinity(0, others)
    try:
        yield defaults
    finally:
        os.sched_setaffinity(0, client)


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """A running server. Its ``url`` has no slash at the end."""

    url: str
    port: int
    command: str
    _process: subprocess.Popen[bytes]
    _output: ChildOutput

    @property
    def pid(self) -> int:
        """Return the server's process id."""
        return self._process.pid

    @property
    def printed(self) -> str:
        """Return the end of the server's output, as far as it is kept."""
        return "\n".join(self._output.lines())

    def is_ready(self, ready: str | None) -> bool:
        """Return whether the server is ready, by the ``ready`` of ``perfci.server``."""
        if ready is None:
            return _takes_connections(self.port)
        url = self.url + ready if ready.startswith("/") else ready
        if is_url(url):
            return _answers(url.replace("{port}", str(self.port)))
        return ready in self.printed

    def await_ready(self, ready: str | None, timeout: float) -> None:
        """Wait until the server is ready. Unusable if it ends first, or isn't ready in time."""
        until = monotonic() + timeout
        while not self.is_ready(ready):
            if ended := self.how_ended():
                raise Unusable("server_ended", ended)
            if monotonic() > until:
                late = f"`{self.command}` was not ready within {timeout:g} s"
                raise Unusable("server_not_ready", f"{late}:\n{self._last_lines()}")
            sleep(_PAUSE_S)

    def how_ended(self) -> str:
        """Return how the server ended, with its last lines, or an empty string while it runs."""
        code = self._process.poll()
        if code is None:
            return ""
        return f"`{self.command}` {how_it_ended(code)}:\n{self._last_lines()}"

    def _last_lines(self) -> str:
        # only a short wait for the end: the server's children may hold the pipe
        return last_words(self._output.lines(within_s=0.2))


def require_running() -> None:
    """Raise Unusable if a server of this process has ended, even if its URL still answers."""
    for started in _STARTED:
        if ended := started.how_ended():
            why = f"requests were answered by something else, for the benchmark's server {ended}"
            raise Unusable("server_ended", why)


def ended_servers() -> list[str]:
    """Return, for each server of this process that no longer runs, how it ended."""
    sleep(_PAUSE_S)  # a server's connections close a little before its process has ended
    return [ended for started in _STARTED if (ended := started.how_ended())]


def is_url(text: str) -> bool:
    """Return whether ``text`` is a URL of a server that perfci can ask."""
    parts = urlsplit(text)
    return parts.scheme == "http" and bool(parts.hostname)


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
