"""``perfci.server``: one side's server, and its endpoint as a stream of tokens."""

from __future__ import annotations

import json
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
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlsplit

from perfci.api import tied
from perfci.api.command import all_of
from perfci.api.definition import user_frame
from perfci.clock import monotonic
from perfci.errors import BenchmarkError, Unusable

_HOST = "127.0.0.1"
_PAUSE_S = 0.01
_ANSWER_S = 2.0
_LAST_LINES, _LONGEST_LINE = 10, 500
_ERRORS = 400
"""Lowest status with which a server isn't ready."""
_STARTED: list[Server] = []
_CHUNK = 1 << 16
_LONGEST_EVENT_LINE = 1 << 20
_SHOWN = 500
_DIGITS = 18
_BOM = "\ufeff".encode()
"""Byte order mark, with which a stream of events may begin."""
_DONE = b"[DONE]"
_FIELDS = frozenset({b"data", b"event", b"id", b"retry", b""})
"""A line that begins with a colon is a comment."""
_NO_TEXT = frozenset({"role"})
"""Keys of a choice's ``delta`` that don't hold the model's text."""


def server(
    command: Sequence[str | os.PathLike[str]],
    *,
    ready: str | None = None,
    timeout: float = 60.0,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Server:
    """Start a server for this side, and return it once it is ready. It ends with the worker.

    ``{port}`` in the command's words is a free port's number, which is ``PORT`` in its environment.
    ``ready`` is a path or URL that answers, or text that it prints. Without it, the server is ready
    when the port takes connections. ``timeout`` is in s.

    Raises Unusable where the server ends or isn't ready in time, or where another one answers at
    its URL already: both sides would measure that one.
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
        [sys.executable, "-P", tied.__file__, str(os.getpid()), *words],
        cwd=cwd,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {}), "PORT": str(port), **_mark()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    started = Server(
        f"http://{_HOST}:{port}", port, shlex.join(words), process, ServerOutput(process)
    )
    try:
        started.await_ready(_check(ready, started), timeout)
    except BaseException:
        process.kill()
        raise
    _STARTED.append(started)
    return started


def _wrongs(command: Any, ready: Any, timeout: Any, cwd: Any, env: Any) -> Iterator[str]:
    """Yield errors in the arguments, each with its correction."""
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
    """Return the variable by which perfci finds and ends a server's children.

    The kernel ends the server itself with this process, but not children in a session of their own.
    Outside of a measurement there is no mark.
    """
    token = os.environ.get("PERFCI_WORKER")
    return {"PERFCI_SERVER": token} if token else {}


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """A running server. Its ``url`` has no slash at the end."""

    url: str
    port: int
    command: str
    _process: subprocess.Popen[bytes]
    _output: ServerOutput

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    @property
    def printed(self) -> str:
        """Return the end of its output, as far as it is kept."""
        return self._output.text()

    def await_ready(self, is_ready: Callable[[], bool], timeout: float) -> None:
        """Wait until it is ready. Raises Unusable where it ends first, or isn't ready in time."""
        until = monotonic() + timeout
        while not is_ready():
            if ended := self.ended():
                raise Unusable("server_ended", ended)
            if monotonic() > until:
                late = f"`{self.command}` was not ready within {timeout:g} s"
                raise Unusable("server_not_ready", f"{late}:\n{self._output.last_lines()}")
            sleep(_PAUSE_S)

    def ended(self) -> str:
        """Return how it ended, with its last lines, or an empty string while it runs."""
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
    """Raise Unusable where a server of this process has ended, even if its URL still answers."""
    for started in _STARTED:
        if ended := started.ended():
            why = f"requests were answered by something else, for the benchmark's server {ended}"
            raise Unusable("server_ended", why)


def ended_servers() -> list[str]:
    """Return how each server of this process ended that no longer runs."""
    sleep(_PAUSE_S)  # its connections close a little before it can be waited for
    return [ended for started in _STARTED if (ended := started.ended())]


class ServerOutput:
    """Reads a server's output, so that the server never blocks, and keeps its end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 (asked for above)
        self._descriptor = process.stdout.fileno()
        self._chunks: deque[bytes] = deque(maxlen=64)
        self._thread = threading.Thread(target=self._run, name="perfci-server", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return the output that is kept."""
        return b"".join(self._chunks.copy()).decode("utf-8", "replace")

    def last_lines(self) -> str:
        """Return the last lines, each cut to a readable length."""
        lines = self.text().strip().splitlines()[-_LAST_LINES:]
        return "\n".join(line[:_LONGEST_LINE] for line in lines) or "it printed nothing"

    def wait(self) -> None:
        """Let the reader catch up. Children of the server may hold the pipe open."""
        self._thread.join(0.2)

    def _run(self) -> None:
        while chunk := os.read(self._descriptor, 1 << 12):
            self._chunks.append(chunk)


def _check(ready: str | None, started: Server) -> Callable[[], bool]:
    """Return a function that returns whether the server is ready."""
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


class Endpoint:
    """A URL to request. Each call makes one request on its own connection."""

    def __init__(self, url: str, body: Any, headers: Mapping[str, str]) -> None:
        self.url = url
        parts = urlsplit(url)
        self._connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._address = parts.hostname or "", parts.port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._method = "GET" if body is None else "POST"
        self._body = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        self._headers = {"Accept": "text/event-stream", **kind, **headers}

    def __call__(self) -> Iterator[str]:
        """Yield each token's event. Raises Unusable for anything but a whole stream of events."""
        connection = self._connect(*self._address)
        tokens = 0
        try:
            connection.request(self._method, self._target, self._body, self._headers)
            response = connection.getresponse()
            self._check(response)
            for payload in _payloads(response):
                if _is_token(payload):
                    tokens += 1
                    yield payload
        except (OSError, HTTPException) as error:
            what = f"failed after {tokens} tokens: {str(error) or type(error).__name__}"
            raise self._failure("request_failed", what) from error
        except ValueError as error:
            raise self._failure("bad_stream", str(error)) from error
        finally:
            connection.close()

    def _check(self, response: HTTPResponse) -> None:
        if response.status != 200:
            body = response.read(_SHOWN).decode("utf-8", "replace")
            what = f"answered {response.status} {response.reason}:\n{body}"
            raise self._failure("request_failed", what)
        kind = response.headers.get_content_type()
        if kind != "text/event-stream":
            raise ValueError(f"answered {kind}, not text/event-stream")

    def _failure(self, kind: str, what: str) -> Unusable:
        return Unusable(kind, "\n".join((f"{self._method} {self.url} {what}", *ended_servers())))


def _payloads(response: HTTPResponse) -> Iterator[str]:
    """Yield each event's data, up to ``[DONE]`` or the body's end.

    Raises ValueError for anything but an event, and for a body that was cut off. A body without a
    length ends with the connection, so its stream has to end with ``[DONE]``.
    """
    data: list[bytes] = []
    done = False
    for line in _lines(response):
        if done:  # the rest is read, so that the server has ended this request
            continue
        if not line:
            if data:
                yield b"\n".join(data).decode("utf-8", "replace")
                data.clear()
            continue
        name, _, value = line.partition(b":")
        if name not in _FIELDS:
            shown = repr(line.decode("utf-8", "replace")[:80])
            raise ValueError(f"sent a line that is no server-sent event: {shown}")
        if name != b"data":
            continue
        value = value.removeprefix(b" ")
        done = value == _DONE
        if not done:
            data.append(value)
    if done:
        return
    if data:
        raise ValueError("ended in the middle of an event")
    if not response.chunked and response.headers["Content-Length"] is None:
        raise ValueError("closed the connection without `data: [DONE]`")


def _lines(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the lines of a body as they arrive, without their ends."""
    length = response.headers["Content-Length"]
    if length and not response.chunked and not (length.isascii() and length.isdigit()):
        raise ValueError(f"sent the length {length[:80]!r}")
    left = int(length[:_DIGITS]) if length and not response.chunked else None
    unread, begins = b"", True
    while left is None or left > 0:
        chunk = response.read1(_CHUNK if left is None else min(_CHUNK, left))
        if not chunk:
            break
        if left is not None:
            left -= len(chunk)
        *lines, unread = (unread + chunk).split(b"\n")
        for line in lines:
            yield (line.removeprefix(_BOM) if begins else line).removesuffix(b"\r")
            begins = False
        if len(unread) > _LONGEST_EVENT_LINE:
            raise ValueError(f"sent a line of more than {_LONGEST_EVENT_LINE:,} bytes")
    if left:
        raise ValueError(f"ended {left} bytes early")
    if unread:
        raise ValueError("ended in the middle of a line")


def _is_token(payload: str) -> bool:
    """Return whether an event carries a token.

    OpenAI's first event (the role), its last (the reason to stop) and its counts carry none. Any
    other event does. Raises ValueError for an error that the stream reports.
    """
    if not payload.startswith("{"):
        return True
    try:
        event = json.loads(payload)
    except (ValueError, RecursionError):
        if '"choices"' in payload[:_SHOWN]:
            raise ValueError(f"sent an event that is no JSON: {payload[:80]!r}") from None
        return True  # a token of plain text may be a bracket
    if "error" in event:
        raise ValueError(f"reported an error: {json.dumps(event['error'])[:_SHOWN]}")
    choices = event.get("choices")
    if not isinstance(choices, list):
        return True
    return any(map(_has_text, choices))


def _has_text(choice: Any) -> bool:
    if not isinstance(choice, dict) or choice.get("text"):
        return True
    delta = choice.get("delta")
    return isinstance(delta, dict) and any(
        value for name, value in delta.items() if name not in _NO_TEXT
    )
