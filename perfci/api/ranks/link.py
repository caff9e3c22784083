"""Connections between a worker and ranks on any node: TCP, and both ends prove the key.

The proof is ``multiprocessing``'s: a challenge each way, answered by its HMAC. What comes after is
neither signed nor encrypted, as is all that ranks themselves send each other.
"""

from __future__ import annotations

import array
import fcntl
import os
import secrets
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

VARIABLE = "PERFCI_RANKS"
"""What a rank needs to find its worker, the key included: no other process of its has it."""
_STRANGER_S = 5.0
"""How long somebody who connects may take to prove the key: others wait meanwhile."""
_PROOF_S = 60.0
_CONNECT_S = 3.0
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""In s, but for the last: how soon the silence of a node that is gone is noticed."""
_SIOCGIFADDR = 0x8915
_INTERFACE = 256  # bytes of an ``ifreq`` and more
_NOT_PROVED = (AuthenticationError, AssertionError, EOFError, OSError)
"""What ``multiprocessing`` raises where the other end is no perfci, or has another key."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where a worker waits for its ranks, and the key that both ends prove."""

    addresses: tuple[str, ...]
    port: int
    key: bytes

    def encoded(self) -> str:
        """Return it as a variable's text."""
        return f"{self.key.hex()}@{self.port}@{','.join(self.addresses)}"

    @staticmethod
    def decoded(text: str) -> Meeting:
        """Return what ``encoded`` made a text of."""
        key, port, addresses = text.split("@")
        return Meeting(tuple(addresses.split(",")), int(port), bytes.fromhex(key))


@dataclass(frozen=True, slots=True)
class Link:
    """A rank's end of a connection: its own address, and the one where it found its worker."""

    connection: Connection
    here: str
    there: str


def meeting(backlog: int) -> tuple[socket.socket, Meeting]:
    """Return a listener on all addresses of this machine, and what ranks need to find it."""
    both = socket.has_dualstack_ipv6()
    listener = socket.create_server(
        ("", 0),
        family=socket.AF_INET6 if both else socket.AF_INET,
        backlog=backlog,
        dualstack_ipv6=both,
    )
    return listener, Meeting(_addresses(), listener.getsockname()[1], secrets.token_bytes(32))


def accepted(listener: socket.socket, key: bytes) -> Connection | None:
    """Return the next connection; None where who connects does not prove the key."""
    try:
        channel, _ = listener.accept()
    except OSError:  # it hung up meanwhile
        return None
    with channel:
        return _proved(channel, key, _STRANGER_S, asks_first=True)


def connected(where: Meeting) -> Link:
    """Return a connection to the worker, by the first of its addresses that it answers on.

    Raises ConnectionError, with what each address said.
    """
    said = []
    for address in where.addresses:
        try:
            channel = socket.create_connection((address, where.port), _CONNECT_S)
        except OSError as error:
            said.append(f"{address}: {error.strerror or error}")
            continue
        with channel:
            here, there = channel.getsockname()[0], channel.getpeername()[0]
            if connection := _proved(channel, where.key, _PROOF_S, asks_first=False):
                return Link(connection, here, there)
            said.append(f"{address}: it doesn't prove the key of this worker")
    raise ConnectionError(f"no worker on port {where.port} of any address ({'; '.join(said)})")


def interface_of(address: str) -> str:
    """Return the name of the interface with that address; nothing where there is none."""
    return next((name for name, one in _interfaces() if one == address), "")


def _proved(
    channel: socket.socket, key: bytes, within_s: float, *, asks_first: bool
) -> Connection | None:
    """Return the connection; None where the other end has not the key, or isn't in time."""
    channel.setblocking(True)
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        channel.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    _limit(channel, within_s)
    connection = Connection(os.dup(channel.fileno()))
    steps = (deliver_challenge, answer_challenge)
    try:
        for step in steps if asks_first else reversed(steps):
            step(connection, key)
    except _NOT_PROVED:
        connection.close()
        return None
    _limit(channel, 0.0)
    return connection


def _limit(channel: socket.socket, within_s: float) -> None:
    """Limit what a read of the connection waits; 0 is for ever. A ``settimeout`` is Python's."""
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(within_s), 0))


def _addresses() -> tuple[str, ...]:
    """Return this machine's addresses, those that only it can use last."""
    found = [one for _, one in _interfaces()]
    try:
        named = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
        found += [str(one[4][0]) for one in named]
    except OSError:  # a name that nobody knows
        pass
    return tuple(
        sorted(dict.fromkeys(found), key=lambda one: one.startswith("127.") or one == "::1")
    )


def _interfaces() -> Iterator[tuple[str, str]]:
    """Yield each interface of this machine that is up, with its IPv4 address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            request = array.array("B", struct.pack(f"{_INTERFACE}s", name.encode()))
            try:
                fcntl.ioctl(asked, _SIOCGIFADDR, request, True)
            except OSError:  # it has none
                continue
            yield name, socket.inet_ntoa(request.tobytes()[20:24])
