"""A server that speaks PostgreSQL's protocol as far as refusing: in any language, with any code."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STARTUP = 196608
_CLEARTEXT = struct.pack("!cII", b"R", 8, 3)


class RefusingServer:
    """Counts the connections that it was asked for."""

    def __init__(
        self, listening: socket.socket, severity: str, code: str, said: str, password: bool
    ) -> None:
        fields = {"S": severity, "V": "FATAL", "C": code, "M": said}
        body = b"".join(f"{key}{text}\0".encode() for key, text in fields.items()) + b"\0"
        self._refusal = struct.pack("!cI", b"E", 4 + len(body)) + body
        self._password = password
        self._listening = listening
        self.asked = 0

    @property
    def url(self) -> str:
        port = self._listening.getsockname()[1]
        return (
            f"postgresql://perfci:geheim@127.0.0.1:{port}/perf?sslmode=disable&gssencmode=disable"
        )

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:  # closed by the test's end
                return
            with connection, connection.makefile("rb") as stream:
                length, version = struct.unpack("!II", stream.read(8))
                assert version >= _STARTUP
                stream.read(length - 8)
                self.asked += 1
                if self._password:
                    connection.sendall(_CLEARTEXT)
                    (length,) = struct.unpack("!xI", stream.read(5))
                    stream.read(length - 4)
                connection.sendall(self._refusal)


@contextmanager
def refusing(
    severity: str, code: str, said: str, *, password: bool = True
) -> Iterator[RefusingServer]:
    """Yield a server that says this to everybody, after or before it asked for a password."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = RefusingServer(listening, severity, code, said, password)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
