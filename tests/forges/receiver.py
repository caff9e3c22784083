"""A webhook on 127.0.0.1 that answers what a test tells it to, and keeps what it was sent."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

from tests.forges.local_server import LocalServer

DROPPED = 0
"""A status: the connection is closed without an answer."""
SILENT = -1
"""A status: there is no answer, and the connection stays open."""
DRIPPING = -2
"""A status: the answer comes byte by byte, each soon enough, and never ends."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request gets."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Receiver:
    """The server; ``answers`` are given in turn, and after them 200."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.types: list[str | None] = []
        self.received = threading.Event()
        self.released = threading.Event()
        self.outwaited = False
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._server = LocalServer(handler)

    @property
    def url(self) -> str:
        return f"{self._server.address}/services/T0/B0/SeCrEt"

    def close(self) -> None:
        self.released.set()
        self._server.close()


class _Handler(BaseHTTPRequestHandler):
    receiver: ClassVar[Receiver]

    def log_message(self, *_: Any) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # who has given up doesn't read the answer
            super().handle()

    def do_POST(self) -> None:
        receiver = self.receiver
        receiver.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        receiver.paths.append(self.path)
        receiver.types.append(self.headers["Content-Type"])
        receiver.received.set()
        answer = receiver.answers.pop(0) if receiver.answers else Answer()
        if answer.status == SILENT:
            receiver.outwaited = not receiver.released.wait(20)
        if answer.status == DRIPPING:
            self._drip()
        if answer.status in {SILENT, DROPPED, DRIPPING}:
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"ok")

    def _drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        for _ in range(200):
            if self.receiver.released.wait(0.1):
                return
            self.wfile.write(b"x")
        self.receiver.outwaited = True

    do_GET = do_POST  # noqa: N815 (http.server's names; how urllib would follow a redirect)
