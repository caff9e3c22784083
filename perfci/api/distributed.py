"""``perfci.distributed``: ranks of a process group as work. Their worker starts and leads them."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import random
import select
import signal
import socket
import sys
import time
import weakref
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from perfci.api.rank import LOOPBACK, WHERE_IT_IS, Raised, Task, serve
from perfci.api.rank_output import RankOutput, standing, why_hanging
from perfci.api.work import Work
from perfci.collecting import Steps
from perfci.errors import BenchmarkError, Unusable

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

BACKENDS, START_METHODS = ("gloo", "nccl"), ("spawn", "fork")
_LONGEST_POLL_MS = 2**31 - 1
_GRACE_S = 0.5
"""What else goes wrong within it may be the reason for what was seen first."""
_LAST_WORDS_S = 0.2
_END_S = 1.0
"""How long ranks that wait for an order may take to end, and threads that have ended to be gone."""
_RAISED = "raised "
_DIED_NS = 0
"""A death comes before what others raised: their collectives fail for it."""


def distributed_work(
    function: Callable[..., Any],
    *,
    ranks: int,
    backend: str,
    args: Sequence[Any],
    items: float | None,
    timeout: float,
    start_method: str,
    where: str,
) -> Work:
    """Start the ranks, have each set up, and return the work of one step of all."""
    wrong = next(_wrongs(function, ranks, backend, args, items, timeout, start_method), "")
    if wrong:
        raise BenchmarkError(
            "bad-distributed",
            f"{where}: perfci.distributed: {wrong}",
            "Write perfci.distributed(train, ranks=2, backend='gloo'), where `train` is a function "
            "of the benchmark's file that sets up one rank and returns its step. What can't be "
            "sent to a rank as one of `args`, make in that function.",
        )
    if start_method == "fork" and (why := _why_no_fork()):
        raise Unusable(
            "rank_unforkable",
            f"{where}: ranks can't be forked: {why}; write start_method='spawn'",
        )
    group = _Group(function, ranks, backend, pickle.dumps(tuple(args)), timeout, start_method)
    return Work(group, items=items, ranks=group)


def _wrongs(
    function: Any,
    ranks: Any,
    backend: Any,
    args: Any,
    items: Any,
    timeout: Any,
    start_method: Any,
) -> Iterator[str]:
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    try:
        found = attrgetter(name)(module)
    except AttributeError:
        found = None
    if not callable(function) or found is not function:
        yield f"{function!r} is no function that another process can import by its name"
    if type(ranks) is not int or ranks < 1:
        yield f"`ranks` is {ranks!r}, not how many processes: 1 or more"
    if backend not in BACKENDS:
        yield f"`backend` is {backend!r}, not one of {', '.join(BACKENDS)}"
    if start_method not in START_METHODS:
        yield f"`start_method` is {start_method!r}, not one of {', '.join(START_METHODS)}"
    if not isinstance(timeout, (int, float)) or not timeout > 0:
        yield f"`timeout` is {timeout!r}, not a time in s: more than 0"
    if items is not None and not (isinstance(items, (int, float)) and 0 < items < math.inf):
        yield f"`items` is {items!r}, not how many a step of all ranks handles: more than 0"
    if not isinstance(args, (tuple, list)):
        yield f"`args` is {repr(args)[:80]}, not a tuple of arguments"
        return
    try:
        pickle.dumps(tuple(args))
    except Exception as error:  # noqa: BLE001 (a user's own __reduce__ may raise anything: told)
        yield f"`args` can't be pickled: {error}"


def _why_no_fork() -> str:
    """Return why this process must not fork: a fork keeps neither threads nor a device alive."""
    until = time.monotonic() + _END_S
    while len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208 (names are counted, not used)
        if time.monotonic() > until:
            return "the worker has more threads than one"
        time.sleep(0.005)  # the kernel may still list one that has ended
    torch = sys.modules.get("torch")
    return "the worker has initialised CUDA" if torch and torch.cuda.is_initialized() else ""


@dataclass(slots=True)
class _Member:
    """A rank as its launcher sees it."""

    rank: int
    process: BaseProcess
    channel: Connection
    output: RankOutput


@dataclass(frozen=True, slots=True, order=True)
class _Trouble:
    """Why a rank can't go on. Of several the least is the reason."""

    when_ns: int
    rank: int
    kind: str
    said: str


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Group:
    """The ranks of a side. A call is one step of each, begun together, until the last has ended."""

    function: Callable[..., Any]
    world: int
    backend: str
    arguments: bytes
    timeout: float
    start_method: str
    _members: list[_Member] = field(default_factory=list)
    _by_number: dict[int, _Member] = field(default_factory=dict)
    _poll: Any = field(default_factory=select.poll)
    _act: str = "start"

    def __post_init__(self) -> None:
        weakref.finalize(self, _end, self._members)
        seed = random.getrandbits(32)
        with socket.create_server((LOOPBACK, 0), backlog=2 * self.world) as listener:
            for rank in range(self.world):
                self._members.append(self._start(rank, seed, listener))
        for member in self._members:
            self._by_number[member.channel.fileno()] = member
            self._poll.register(member.channel.fileno(), select.POLLIN)
            member.output.start()
        self._answers(None)
        self._act = "set-up"
        self._all("set_up")
        self._act = "step"

    def __call__(self) -> None:
        self._all("step")

    def begin(self) -> None:
        """Let the ranks know that they are warm: the bursts are next."""
        self._all("begin")

    def peaks(self) -> Sequence[Mapping[str, float]]:
        """Return the most memory of each rank, by metric."""
        return self._all("peaks")

    def inspected(self, count: int) -> Sequence[Steps]:
        """Return what ``count`` more steps of each rank are like."""
        return self._all("inspected", count, times=count)

    def _all(self, order: str, *arguments: Any, times: int = 1) -> list[Any]:
        """Have every rank do as ``order`` says, and return what each answers."""
        for member in self._members:
            with contextlib.suppress(ConnectionError):  # it died: its channel says so next
                member.channel.send((order, *arguments))
        return self._answers(times * self.timeout)

    def _start(self, rank: int, seed: int, listener: socket.socket) -> _Member:
        context: Any = multiprocessing.get_context(self.start_method)
        channel, theirs = context.Pipe()
        source, sink = context.Pipe(duplex=False)
        port = listener.getsockname()[1]
        task = Task(
            self.function.__module__,
            self.function.__qualname__,
            self.arguments,
            self.backend,
            rank,
            self.world,
            port,
            seed,
            os.getpid(),
            _environment(rank, self.world, port),
        )
        ours = (channel, source, *(one.channel for one in self._members))
        inherited = ours if self.start_method == "fork" else ()
        # no daemon: that may have no children, and a rank's DataLoader has some
        process = context.Process(target=serve, args=(task, theirs, sink, listener, inherited))
        process.start()
        theirs.close()
        sink.close()
        return _Member(rank, process, channel, RankOutput(rank, source))

    def _answers(self, within_s: float | None) -> list[Any]:
        """Return what each rank answers. Unusable, by the rank's name, where one can't."""
        answers: dict[int, Any] = {}
        until = time.monotonic() + (within_s or 0.0)
        while len(answers) < self.world:
            left_ms = min(_LONGEST_POLL_MS, max(0.0, until - time.monotonic()) * 1e3)
            ready = self._poll.poll(None if within_s is None else left_ms)
            if not ready:
                raise self._hanging(answers)
            for number, _ in ready:
                member = self._by_number[number]
                answer = _answer_of(member)
                if isinstance(answer, _Trouble):
                    raise self._failure(answer)
                answers[member.rank] = answer
        return [answers[rank] for rank in range(self.world)]

    def _failure(self, first: _Trouble) -> Unusable:
        """Return the failure of the rank that is to blame, and end all of them."""
        troubles = [first]
        until = time.monotonic() + _GRACE_S
        while (left_s := until - time.monotonic()) > 0 and len(troubles) < self.world:
            for number, _ in self._poll.poll(left_s * 1e3):
                self._poll.unregister(number)  # one that died is ready for ever
                answer = _answer_of(self._by_number[number])
                if isinstance(answer, _Trouble) and answer.rank != first.rank:
                    troubles.append(answer)
        worst = min([*troubles, *self._deaths({one.rank for one in troubles})])
        output = self._members[worst.rank].output
        text = f"rank {worst.rank} of {self.world}, in its {self._act}, {worst.said}"
        words = output.last_words(_LAST_WORDS_S, worst.said.removeprefix(_RAISED))
        said = f"{text}:\n{words}" if words else text
        _end(self._members, within_s=0.0)
        return Unusable(worst.kind, said)

    def _hanging(self, answered: Container[int]) -> Unusable:
        """Return what the ranks that have not answered wait for, and end all of them."""
        if deaths := self._deaths(answered):
            return self._failure(min(deaths))
        late = [one for one in self._members if one.rank not in answered]
        for member in late:
            os.kill(member.process.pid or 0, WHERE_IT_IS)
        stand = [standing(one.rank, one.output.lines(_LAST_WORDS_S)) for one in late]
        _end(self._members, within_s=0.0)
        return Unusable(*why_hanging(stand, self.world, self._act, self.timeout))

    def _deaths(self, but: Container[int]) -> list[_Trouble]:
        """Return who died without a word: its channel stays open as long as a child holds it."""
        others = (one for one in self._members if one.rank not in but)
        return [_death_of(one) for one in others if one.process.exitcode]


def _death_of(member: _Member) -> _Trouble:
    return _Trouble(_DIED_NS, member.rank, "rank_died", _how_ended(member.process.exitcode))


def _answer_of(member: _Member) -> Any:
    """Return what a rank has answered, or a ``_Trouble``."""
    try:
        answer = member.channel.recv()
    except (EOFError, ConnectionError):
        member.process.join(_GRACE_S)
        return _death_of(member)
    if isinstance(answer, Raised):
        return _Trouble(answer.when_ns, member.rank, "rank_raised", f"{_RAISED}{answer.said}")
    return answer


def _how_ended(code: int | None) -> str:
    if code is None:
        return "closed perfci's pipe"
    if code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"left with exit code {code}"


def _end(members: Sequence[_Member], within_s: float = _END_S) -> None:
    """End the ranks: by themselves, if they wait for an order, so that the watch hears of it."""
    for member in members:
        member.channel.close()
    until = time.monotonic() + within_s
    for member in members:
        member.process.join(max(0.0, until - time.monotonic()))
        if member.process.exitcode is None:
            member.process.kill()
            member.process.join()
        member.output.lines(_LAST_WORDS_S)  # its thread ends: a later group may want to fork


def _environment(rank: int, world: int, port: int) -> dict[str, str]:
    """Return torchrun's variables, the sockets' interface, and a rank's share of the threads."""
    found = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "ROLE_RANK": rank,
        "GROUP_RANK": 0,
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": world,
        "ROLE_WORLD_SIZE": world,
        "GROUP_WORLD_SIZE": 1,
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": port,
        "TORCHELASTIC_USE_AGENT_STORE": True,  # `env://` joins the store that is there
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCHELASTIC_RUN_ID": "perfci",
    }
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if (threads := os.environ.get(name, "")).isdigit():
            found[name] = max(1, int(threads) // world)
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        found[name] = os.environ.get(name, "lo")
    return {name: str(value) for name, value in found.items()}
