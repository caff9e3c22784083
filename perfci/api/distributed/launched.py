"""Ranks that a launcher starts (``srun``, ``mpirun``, ``torchrun``), on any node, over TCP.

Both ends of a connection prove that they have the key, by the HMAC of a challenge, as
``multiprocessing`` does. Later messages are neither signed nor encrypted. The same holds for what
ranks send each other.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import secrets
import select
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path

from perfci.api import how_it_ended, tied_command
from perfci.api.distributed.member import END_S, LAST_WORDS_S, Member, RankOutput, StartedRanks
from perfci.api.distributed.rank import RankJob, RankPlace, RankTask, environment
from perfci.errors import Unusable

BOOTSTRAP = str(Path(__file__).parents[2] / "worker" / "bootstrap.py")
_JOIN_ARGUMENT = "join"
"""Argument of ``BOOTSTRAP`` in a process that is to become a rank."""
RANK_AND_SIZE = {
    "RANK": "WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMIX_RANK": "",
    "PMI_RANK": "PMI_SIZE",
    "SLURM_PROCID": "SLURM_NTASKS",
}
"""Launchers' variables for a rank's number, each with that for the number of ranks.

The first variable that is set counts.
"""
_POLL_MS = 50.0
_CLOCK_READINGS = 3
"""Readings of a rank's clock, of which the quickest counts."""
MEETING_VARIABLE = "PERFCI_RANKS"
"""Holds the encoded ``Meeting``, key included. A rank removes it before anything else starts."""
_STRANGERS_PROOF_S = 5.0
"""Time in which a new connection has to prove the key. Other connections wait meanwhile."""
_WORKERS_PROOF_S = 60.0
"""Time in which the worker has to prove the key to a rank. It may have to serve others first."""
_CONNECT_S = 3.0
"""Longest wait for a connection to one of the worker's addresses."""
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""A node that is gone is noticed after 10 s + 3 probes, 5 s apart."""
_SIOCGIFADDR = 0x8915
"""Linux' request for the address of an interface."""
_IFREQ_BYTES = 256  # the structure is smaller
_NOT_PROVED = (AuthenticationError, AssertionError, EOFError, OSError)
"""Errors of ``multiprocessing`` if the other end isn't perfci, or has another key."""


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """First message of a process that wants to be a rank.

    ``variable`` is the environment variable that gave the process its number, or empty. ``here`` is
    the process's own address and ``there`` the worker's, as in ``Link``.
    """

    host: str
    here: str
    there: str
    variable: str = ""
    rank: int = -1
    world: int = 0


@dataclass(frozen=True, slots=True)
class RankOrders:
    """Orders to start a launched rank: its task, and the worker's folder, path and variables.

    ``address`` is the rank's own.
    """

    task: RankTask
    folder: str
    path: tuple[str, ...]
    variables: Mapping[str, str]
    address: str


def launch(words: Sequence[str], within_s: float, job: RankJob, started: StartedRanks) -> None:
    """Have the launcher start a process for each rank of ``job``, and wait until all have joined.

    Raises Unusable, with advice, if a rank hasn't joined ``within_s``.
    """
    if shutil.which(words[0]) is None:
        raise Unusable(
            "rank_launcher",
            f"the ranks' launcher `{shlex.join(words)}` can't be started: there is no {words[0]} "
            "on the worker's PATH: install it, or write its whole path",
        )
    listener, where = meeting(backlog=6 * job.world)
    with listener:
        launcher = Launcher(words, where.encoded())
        started.launcher = launcher
        ranks = _JoiningRanks(job.world, launcher, listener, where.key, within_s)
        try:
            for member in _members(job, ranks.all_joined()):
                started.members.append(member)
        except BaseException:
            ranks.close()
            raise


class LaunchedRank:
    """A rank's process, as the process that started it reports: first orders, then its end.

    Its connections come in one by one: ``control`` first, then the ``others`` by their names.
    """

    def __init__(self, joined: JoinRequest, control: Connection) -> None:
        self.joined = joined
        self.control = control
        self.others: dict[str, Connection] = {}
        self._code: int | None = None
        self._over = False

    def tell(self, order: str, what: object = None) -> None:
        """Send an order. Unusable if the process has ended since it joined."""
        try:
            self.control.send((order, what))
        except OSError:
            raise self._gone() from None

    def answer_to(self, order: str, what: object = None) -> int:
        """Return the answer to an order. Unusable if the process has ended since it joined."""
        self.tell(order, what)
        try:
            answer: int = self.control.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        return answer

    @property
    def exitcode(self) -> int | None:
        """Return the rank's exit code, negative for a signal. None while it lives, or if lost."""
        self.join(0.0)
        return self._code

    def join(self, within_s: float) -> None:
        """Wait for the rank's end, for ``within_s`` at most."""
        try:
            if not self._over and self.control.poll(within_s):
                self._code = self.control.recv()
                self._over = True
        except (EOFError, OSError):
            self._over = True

    def kill(self) -> None:
        """Have the rank killed, and wait for its end."""
        self._order("kill")
        self.join(END_S)
        self._over = True
        self.control.close()

    def show(self) -> None:
        """Have the rank write its main thread's stack to standard error, whatever it waits for."""
        self._order("show")

    def _order(self, what: str) -> None:
        if not self._over:
            with contextlib.suppress(OSError):  # the process is gone, and its rank with it
                self.control.send(what)

    def _gone(self) -> Unusable:
        return Unusable(
            "rank_died", f"rank {self.joined.rank} on {self.joined.host} ended before its set-up"
        )


@dataclass(slots=True)
class _JoiningRanks:
    """Waits for the ranks to join, and has those that have joined so far.

    ``refused`` counts connections that didn't prove the key.
    """

    world: int
    launcher: Launcher
    listener: socket.socket
    key: bytes
    within_s: float
    candidates: dict[int, LaunchedRank] = field(default_factory=dict)
    refused: int = 0

    def all_joined(self) -> list[LaunchedRank]:
        """Wait until each rank has made all its connections. Return the ranks in order."""
        deadline = time.monotonic() + self.within_s
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        complete = 0
        while complete < self.world:
            if poll.poll(_POLL_MS):
                self._accept()
            elif (code := self.launcher.ended()) is not None:
                raise self._failure(
                    f"it {code} before all ranks had joined",
                    f"try it by hand on this node: {self.launcher.line} hostname",
                )
            elif time.monotonic() > deadline:
                raise self._failure(
                    f"not all ranks have joined in {self.within_s:g} s",
                    "it has to start one process a rank, on nodes that reach this one by TCP; "
                    "under Slurm, next to the other side's: srun --overlap",
                )
            complete = sum(len(candidate.others) == 2 for candidate in self.candidates.values())
        return [self.candidates[rank] for rank in range(self.world)]

    def close(self) -> None:
        """Hang up, which ends each process that has joined."""
        for candidate in self.candidates.values():
            for connection in (candidate.control, *candidate.others.values()):
                connection.close()

    def _accept(self) -> None:
        connection = accepted(self.listener, self.key)
        if connection is None:
            self.refused += 1
            return
        purpose, what = connection.recv()
        if purpose != "control":
            self.candidates[what].others[purpose] = connection
            return
        if error := self._error_in(what):
            connection.close()
            raise self._failure(*error)
        self.candidates[what.rank] = LaunchedRank(what, connection)

    def _error_in(self, request: JoinRequest) -> tuple[str, str] | None:
        """Return an error in the request and advice, or None."""
        tasks = f"have it start as many processes as `ranks` says, {self.world}"
        if not request.variable:
            known = ", ".join(RANK_AND_SIZE)
            return (
                (
                    f"a process on {request.host} doesn't know which rank it is: "
                    f"it has none of {known}"
                ),
                "take a launcher that sets one of them, as srun, mpirun and torchrun do",
            )
        if request.world and request.world != self.world:
            size = RANK_AND_SIZE[request.variable]
            return f"it starts {request.world} processes, by {size} on {request.host}", tasks
        if not 0 <= request.rank < self.world:
            return (
                f"a process on {request.host} is rank {request.rank}, by {request.variable}",
                tasks,
            )
        if other := self.candidates.get(request.rank):
            hosts = f"{other.joined.host} and {request.host}"
            return (
                f"two processes are rank {request.rank}, by {request.variable}, on {hosts}",
                tasks,
            )
        return None

    def _failure(self, what: str, advice: str) -> Unusable:
        missing = sorted({*range(self.world)} - {*self.candidates})
        state = f"{len(self.candidates)} of {self.world} ranks joined"
        if self.candidates:
            there = ", ".join(
                f"{rank} on {launched.joined.host}"
                for rank, launched in sorted(self.candidates.items())
            )
            state += f" ({there}); {', '.join(map(str, missing))} didn't" if missing else ""
        if self.refused:
            state += f"; {self.refused} that connected had not the key and were refused"
        output = self.launcher.said()
        output = f"\nIt said:\n{output}" if output else ""
        self.close()
        self.launcher.end()
        return Unusable(
            "rank_launcher",
            f"of the ranks' launcher `{self.launcher.line}`: {what}; {state}: {advice}{output}",
        )


def _members(job: RankJob, joined: Sequence[LaunchedRank]) -> Iterator[Member]:
    """Give each rank its task, and yield it as a member."""
    here = socket.gethostname()
    requests = [launched.joined for launched in joined]
    hosts = [request.host for request in requests]
    nodes = list(dict.fromkeys(hosts))
    # of this node's addresses, take the one by which a rank on another node reached the worker
    seen_as = next((request.there for request in requests if request.host != here), "")
    addresses = [
        seen_as if seen_as and request.host == here else request.here for request in requests
    ]
    master = addresses[0], joined[0].answer_to("listen", addresses[0])
    for rank, launched in enumerate(joined):
        host = hosts[rank]
        place = RankPlace(
            rank,
            job.world,
            local_rank=hosts[:rank].count(host),
            local_world=hosts.count(host),
            node=nodes.index(host),
            nodes=len(nodes),
            host=host,
        )
        task = RankTask(job, place, master, 0, environment(place, master, os.environ))
        ahead_ns = _ahead_ns(launched)
        folder, path = str(Path.cwd()), tuple(sys.path)
        launched.tell("serve", RankOrders(task, folder, path, dict(os.environ), addresses[rank]))
        output = RankOutput(f"rank {rank}", launched.others["output"])
        yield Member(rank, launched, launched.others["channel"], output, host, ahead_ns)


def _ahead_ns(rank: LaunchedRank) -> int:
    """Return how far a rank's clock is ahead of this process's, by the quickest of a few readings.

    The rank is assumed to have read its clock in the middle between request and answer.
    """
    readings = []
    for _ in range(_CLOCK_READINGS):
        before_ns = time.monotonic_ns()
        rank_ns = rank.answer_to("clock")
        took_ns = time.monotonic_ns() - before_ns
        readings.append((took_ns, rank_ns - before_ns - took_ns // 2))
    return min(readings)[1]


class Launcher:
    """The launcher's process. The kernel kills it when the worker ends."""

    def __init__(self, words: Sequence[str], secret: str) -> None:
        self.line = shlex.join(words)
        sys.audit("perfci.command", words[0])  # recorded, as processes on other nodes aren't seen
        named = {*RANK_AND_SIZE, *RANK_AND_SIZE.values()}
        kept = {name: value for name, value in os.environ.items() if name not in named}
        source, sink = os.pipe()
        self._process = subprocess.Popen(
            tied_command([*words, sys.executable, "-P", BOOTSTRAP, _JOIN_ARGUMENT]),
            env={**kept, MEETING_VARIABLE: secret},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
        os.close(sink)
        self._output = RankOutput("launcher", Connection(source, writable=False))
        self._output.start()

    def ended(self) -> str | None:
        """Return how the launcher ended, or None while it runs."""
        code = self._process.poll()
        return None if code is None else how_it_ended(code)

    def said(self) -> str:
        """Return the last lines of the launcher's output."""
        return "\n".join(self._output.last_lines(LAST_WORDS_S))

    def end(self) -> None:
        """Wait until the launcher ends, as it does after its ranks. Kill it if that takes long."""
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)
            self._process.kill()
            self._process.wait()
        self._output.lines(LAST_WORDS_S)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Addresses where a worker waits for its ranks, and the key that both ends prove."""

    addresses: tuple[str, ...]
    port: int
    key: bytes

    def encoded(self) -> str:
        """Return the meeting as a variable's text."""
        return f"{self.key.hex()}@{self.port}@{','.join(self.addresses)}"

    @staticmethod
    def decoded(text: str) -> Meeting:
        """Return the meeting that ``encoded`` gave as text."""
        key, port, addresses = text.split("@")
        return Meeting(tuple(addresses.split(",")), int(port), bytes.fromhex(key))


@dataclass(frozen=True, slots=True)
class Link:
    """A rank's end of a connection: ``here`` is its own address, ``there`` the worker's."""

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
    """Return the next connection, or None if the other end doesn't prove the key."""
    try:
        channel, _ = listener.accept()
    except OSError:  # the other end hung up meanwhile
        return None
    with channel:
        return _proved(channel, key, _STRANGERS_PROOF_S, asks_first=True)


def connected(where: Meeting) -> Link:
    """Return a connection to the worker, by the first of its addresses that answers.

    Raises ConnectionError, with the failure of each address.
    """
    failures = []
    for address in where.addresses:
        try:
            channel = socket.create_connection((address, where.port), _CONNECT_S)
        except OSError as error:
            failures.append(f"{address}: {error.strerror or error}")
            continue
        with channel:
            here, there = channel.getsockname()[0], channel.getpeername()[0]
            if connection := _proved(channel, where.key, _WORKERS_PROOF_S, asks_first=False):
                return Link(connection, here, there)
            failures.append(f"{address}: it doesn't prove the key of this worker")
    raise ConnectionError(f"no worker on port {where.port} of any address ({'; '.join(failures)})")


def interface_of(address: str) -> str:
    """Return the name of the interface with that address, or an empty string."""
    return next((name for name, known in _interfaces() if known == address), "")


def _proved(
    channel: socket.socket, key: bytes, within_s: float, *, asks_first: bool
) -> Connection | None:
    """Return the connection, or None if the other end doesn't prove the key in time."""
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
    """Limit how long reads of the descriptor wait (0: no limit).

    ``settimeout`` would limit the socket object's methods only, not reads of its descriptor.
    """
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(within_s), 0))


def _addresses() -> tuple[str, ...]:
    """Return this machine's addresses. Loopback addresses come last."""
    addresses = [address for _, address in _interfaces()]
    try:
        named = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
        addresses += [str(entry[4][0]) for entry in named]
    except OSError:  # the host's name can't be resolved
        pass
    return tuple(
        sorted(
            dict.fromkeys(addresses),
            key=lambda address: address.startswith("127.") or address == "::1",
        )
    )


def _interfaces() -> Iterator[tuple[str, str]]:
    """Yield each interface of this machine that is up, with its IPv4 address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = array.array("B", struct.pack(f"{_IFREQ_BYTES}s", name.encode()))
            try:
                fcntl.ioctl(probe, _SIOCGIFADDR, request, True)
            except OSError:  # the interface has no IPv4 address
                continue
            yield name, socket.inet_ntoa(request.tobytes()[20:24])
