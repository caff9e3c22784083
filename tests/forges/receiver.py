"""A server on 127.0.0.1 that answers what a test tells it to, and keeps what it was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

from tests.forges.local_server import LocalServer


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
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._server = LocalServer(handler)

    @property
    def url(self) -> str:
        """Return the address as apprise wants it."""
        return f"{self._server.address.replace('http', 'json')}/SeCrEt"

    def close(self) -> None:
        self._server.close()


class _Handler(BaseHTTPRequestHandler):
    receiver: ClassVar[Receiver]

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        receiver = self.receiver
        receiver.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        answer = receiver.answers.pop(0) if receiver.answers else Answer()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"ok")
