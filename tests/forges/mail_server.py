"""A mail server on 127.0.0.1 that keeps what it is sent, and refuses what a test tells it to."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from email.message import EmailMessage


class MailReceiver:
    """The server. ``refused`` are recipients it doesn't take, ``greeting`` is its first line."""

    def __init__(self, greeting: str = "220 ready") -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.commands: list[str] = []
        self.refused: set[str] = set()
        self.greeting = greeting
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(socketserver.StreamRequestHandler):
    receiver: MailReceiver

    def handle(self) -> None:
        self._say(self.receiver.greeting)
        accepted: list[str] = []
        while line := self.rfile.readline().decode():
            command = line.strip()
            self.receiver.commands.append(command)
            verb = command[:4].upper()
            if verb == "RCPT" and any(name in command for name in self.receiver.refused):
                self._say("550 no such user")
            elif verb == "RCPT":
                accepted.append(command.partition("<")[2].partition(">")[0])
                self._say("250 ok")
            elif verb == "DATA":
                self._take(accepted)
            elif verb == "AUTH":
                self._say("235 ok")
            elif verb == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250-here\r\n250 AUTH PLAIN" if verb == "EHLO" else "250 ok")

    def _take(self, accepted: list[str]) -> None:
        self._say("354 go on")
        lines = []
        while (line := self.rfile.readline()) not in {b".\r\n", b""}:
            lines.append(line.removeprefix(b"."))
        message = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.receiver.messages.append(message)
        self.receiver.recipients.append(accepted)
        self._say("250 taken")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())
