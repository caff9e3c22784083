"""A server of tokens whose time is virtual, and a client of it that shares no code with perfci.

The server passes time before each event, and sends the next event when its client has read the
clock for the last. So the times that a client notes depend on the client's logic alone, not on the
machine: both clients have to get the same figures.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

WITHIN_S = 30.0


class VirtualClock:
    """A clock that its server moves, and that tells when it was read."""

    def __init__(self) -> None:
        self.now = 100.0
        self.was_read = Event()

    def __call__(self) -> float:
        now = self.now
        self.was_read.set()
        return now


@dataclass(frozen=True)
class Reply:
    """A response: for each event the time before it, in s, and its tokens' texts.

    ``usage``: ``"end"`` or ``"each"``, where it is reported, or ``""``. A response that isn't
    ``chunked`` says that the connection closes after it. One that ``hangs_up`` doesn't say it.
    """

    events: Sequence[tuple[float, Sequence[str]]]
    usage: str = ""
    status: int = 200
    chunked: bool = True
    hangs_up: bool = False


@dataclass
class TokenServer:
    """A running server. ``bodies`` are those of its requests, ``ports`` those of its clients."""

    url: str
    clock: VirtualClock
    bodies: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)


@contextmanager
def token_server(*replies: Reply, lockstep: bool = True) -> Iterator[TokenServer]:
    """Yield a server that gives these replies in turn, one client at a time if in ``lockstep``."""
    upcoming = cycle(replies)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # an event is not to wait for the last one's receipt

        def do_POST(self) -> None:
            reply = next(upcoming)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.bodies.append(json.loads(body))
            server.paths.append(self.path)
            server.ports.append(self.client_address[1])
            self.send_response(reply.status)
            self.send_header("Content-Type", "text/event-stream")
            if reply.chunked:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Connection", "close")
            self.end_headers()
            self.tell(reply, {"choices": [{"delta": {"role": "assistant", "content": ""}}]})
            count = 0
            for seconds, texts in reply.events:
                server.clock.now += seconds
                count += len(texts)
                content = {"choices": [{"delta": {"content": "".join(texts)}}]}
                used = {"usage": {"completion_tokens": count}} if reply.usage == "each" else {}
                self.tell(reply, {**content, **used})
            if reply.usage:
                self.tell(reply, {"choices": [], "usage": {"completion_tokens": count}})
            self.write(reply, b"data: [DONE]\n\n")
            if reply.chunked:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection |= reply.hangs_up

        def tell(self, reply: Reply, content: dict[str, Any]) -> None:
            server.clock.was_read.clear()
            self.write(reply, f"data: {json.dumps(content)}\n\n".encode())
            assert not lockstep or server.clock.was_read.wait(WITHIN_S)

        def write(self, reply: Reply, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if reply.chunked else data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        server = TokenServer(f"http://127.0.0.1:{listening.server_port}", VirtualClock())
        Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        listening.shutdown()


@dataclass
class Figures:
    """What the independent client saw: by request, times in s and the number of tokens."""

    first: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)


def independent_figures(
    url: str, requests: int, clock: Callable[[], float], count: Callable[[str], int]
) -> Figures:
    """Make requests one after the other, as ``vllm bench serve`` defines its figures.

    ``count`` gives the number of an event's tokens, which share the time since the last event.
    """
    figures = Figures()
    address = urlsplit(url)
    for _ in range(requests):
        with socket.create_connection((address.hostname, address.port), WITHIN_S) as connection:
            body = b'{"prompt": "a"}'
            began = clock()
            head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            unread, last, tokens = b"", began, 0
            first = None
            while b"[DONE]" not in unread:
                unread += connection.recv(1 << 16)
                *events, unread = unread.split(b"\n\n")
                for event in events:
                    now = clock()
                    data = event[event.find(b"data: ") + 6 :]
                    if data == b"[DONE]":
                        unread = b"[DONE]"
                        break
                    choices = json.loads(data)["choices"]
                    text = choices[0]["delta"].get("content") if choices else ""
                    if not text:
                        continue
                    size = count(text)
                    if first is None:
                        first = now
                        figures.between += [0.0] * (size - 1)
                    else:
                        figures.between += [(now - last) / size] * size
                    last, tokens = now, tokens + size
            assert first is not None
            figures.first.append(first - began)
            figures.whole.append(last - began)
            figures.tokens.append(tokens)
    return figures
