"""The ranks of a side as their worker sees them: orders, answers, output, and how they failed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import select
import socket
import weakref
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from time import monotonic
from typing import TYPE_CHECKING, Any

from perfci.api.children import ChildOutput, how_it_ended, last_words
from perfci.api.distributed.orders import RankTrouble
from perfci.api.distributed.rank import LOOPBACK, WHERE_IT_IS, RankJob, serve
from perfci.collector import OutputSketch, Steps
from perfci.errors import Unusable

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

_GRACE_S = 0.5
"""Time after a first failure in which another may show up that caused it."""
_LAST_WORDS_S = 0.2
"""Time for a rank's last output to arrive."""
_END_S = 1.0
"""Time for ranks that wait for an order to end by themselves."""
_STACK_S, _POLL_S = 5.0, 0.01
"""Time for a rank that hangs to write its stack, and time between two checks for it."""
_LONGEST_POLL_MS = 2**31 - 1
_DIED_NS = 0
"""Time given to a death. It sorts before other ranks' exceptions, which the death has caused."""
_STACK = "most recent call first"
"""Part of the line that ``faulthandler`` writes before a stack."""
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
"""A frame in a stack that ``faulthandler`` wrote."""
_LIBRARY = re.compile(r"/(site-packages|lib/python3[.\d]+)/|^<")
"""Matches files that aren't user code."""


def place_in_stack(output: ChildOutput, within_s: float) -> str:
    """Wait for a stack in the output, for ``within_s`` at most. Return its user's line."""
    until = monotonic() + within_s
    while not any(_STACK in line for line in output.lines(_POLL_S)):
        if monotonic() > until or output.has_ended():
            return "a place that isn't known"
    lines = output.lines(_LAST_WORDS_S)
    begin = max(number for number, line in enumerate(lines) if _STACK in line)
    frames = [match.groups() for line in lines[begin:] if (match := _FRAME.match(line))]
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])] or frames
    return "{}:{} in {}".format(*own[0])


@dataclass(slots=True)
class Member:
    """A rank, as its process, its channel and its output."""

    rank: int
    process: BaseProcess
    channel: Connection
    output: ChildOutput

    def answer(self) -> Any:
        """Return the rank's answer, or a ``RankTrouble`` if it failed or died."""
        try:
            return self.channel.recv()
        except (EOFError, OSError):
            self.process.join(_GRACE_S)
            return self.death()

    def death(self) -> RankTrouble:
        """Return how the rank ended."""
        code = self.process.exitcode
        how = "closed its connection to perfci" if code is None else how_it_ended(code)
        return RankTrouble(_DIED_NS, self.rank, "rank_died", how)


def _end(members: Sequence[Member], within_s: float = _END_S) -> None:
    """Close the channels, so that ranks which wait for an order end. Kill the others.

    A rank that ends by itself, unlike one that is killed, reports what code it ran.
    """
    for member in members:
        member.channel.close()
    until = monotonic() + within_s
    for member in members:
        member.process.join(max(0.0, until - monotonic()))
        if member.process.exitcode is None:
            member.process.kill()
            member.process.join()
        # waits for the output's thread to end, because a later group may need to fork
        member.output.lines(_LAST_WORDS_S)


class RankGroup:
    """The ranks of a side. A call makes one step of each rank, and ends when the last one ends."""

    def __init__(self, job: RankJob, timeout: float, start_method: str) -> None:
        self._world = job.world
        self._timeout = timeout
        self._members: list[Member] = []
        weakref.finalize(self, _end, self._members)
        with socket.create_server((LOOPBACK, 0), backlog=2 * job.world) as listener:
            job = replace(job, port=listener.getsockname()[1])
            for rank in range(job.world):
                self._members.append(_child(job, rank, start_method, listener, self._members))
        self._by_descriptor: dict[int, Member] = {}
        self._poll = select.poll()
        for member in self._members:
            self._by_descriptor[member.channel.fileno()] = member
            self._poll.register(member.channel.fileno(), select.POLLIN)
            member.output.start()
        self._act = "start"
        self._answers(None)
        self._act = "set-up"
        self._all("set_up")
        self._act = "step"

    def __call__(self) -> None:
        """Make a step of each rank."""
        self._all("step")

    def begin(self) -> None:
        """Let the ranks know that they are warm: the bursts are next."""
        self._all("begin")

    def peaks(self) -> Sequence[Mapping[str, float]]:
        """Return each rank's peaks of memory, by metric."""
        return self._all("peaks")

    def inspected(self, count: int) -> Sequence[Steps]:
        """Return each rank's profile of ``count`` more steps."""
        return self._all("inspected", count, times=count)

    def outputs(self) -> Sequence[OutputSketch]:
        """Return a sketch of each rank's output of one more step."""
        return self._all("outputs")

    def _all(self, order: str, *arguments: Any, times: int = 1) -> list[Any]:
        """Send an order to every rank and return their answers."""
        for member in self._members:
            with contextlib.suppress(OSError):  # the rank died, which reading its channel will show
                member.channel.send((order, *arguments))
        return self._answers(times * self._timeout)

    def _answers(self, within_s: float | None) -> list[Any]:
        """Return the answers of all ranks, in order. Raises Unusable if a rank fails or hangs."""
        answers: dict[int, Any] = {}
        until = monotonic() + (within_s or 0.0)
        while len(answers) < self._world:
            left_ms = min(_LONGEST_POLL_MS, max(0.0, until - monotonic()) * 1e3)
            ready = self._poll.poll(None if within_s is None else left_ms)
            if not ready:
                raise self._hanging(answers)
            for descriptor, _ in ready:
                member = self._by_descriptor[descriptor]
                answer = member.answer()
                if isinstance(answer, RankTrouble):
                    raise self._failure(answer)
                answers[member.rank] = answer
        return [answers[rank] for rank in range(self._world)]

    def _failure(self, first: RankTrouble) -> Unusable:
        """Return the failure of the rank that failed first or died, and end all ranks."""
        troubles = {first.rank: first}
        until = monotonic() + _GRACE_S
        while (left_s := until - monotonic()) > 0 and len(troubles) < self._world:
            for descriptor, _ in self._poll.poll(left_s * 1e3):
                self._poll.unregister(descriptor)  # a dead rank's descriptor stays ready for ever
                answer = self._by_descriptor[descriptor].answer()
                if isinstance(answer, RankTrouble):
                    troubles.setdefault(answer.rank, answer)
        worst = min([*troubles.values(), *self._deaths(troubles)])
        words = last_words(self._members[worst.rank].output.lines(_LAST_WORDS_S))
        _end(self._members, within_s=0.0)
        which = f"rank {worst.rank} of {self._world}, in its {self._act},"
        return Unusable(worst.kind, f"{which} {worst.message}:\n{words}")

    def _hanging(self, answered: Container[int]) -> Unusable:
        """Return the failure of ranks that hang: where each late one stands. End all ranks."""
        if deaths := self._deaths(answered):
            return self._failure(min(deaths))
        late = [member for member in self._members if member.rank not in answered]
        for member in late:
            os.kill(member.process.pid or 0, WHERE_IT_IS)
        stand = "; ".join(
            f"rank {each.rank} is at {place_in_stack(each.output, _STACK_S)}" for each in late
        )
        _end(self._members, within_s=0.0)
        which = ", ".join(str(member.rank) for member in late)
        missing = f"rank {which} of {self._world} has not ended its {self._act}"
        return Unusable("rank_hung", f"{missing} in {self._timeout:g} s: {stand}")

    def _deaths(self, known: Container[int]) -> list[RankTrouble]:
        """Return the ranks that died unnoticed, as a channel stays open while a child holds it."""
        others = (member for member in self._members if member.rank not in known)
        return [other.death() for other in others if other.process.exitcode]


def _child(
    job: RankJob,
    rank: int,
    start_method: str,
    listener: socket.socket,
    others: Sequence[Member],
) -> Member:
    """Start a rank. Rank 0 serves the rendezvous on ``listener``."""
    context: Any = multiprocessing.get_context(start_method)
    channel, rank_end = context.Pipe()
    source, sink = context.Pipe(duplex=False)
    ours: tuple[Connection, ...] = (channel, source, *(other.channel for other in others))
    inherited = ours if start_method == "fork" else ()
    # not a daemon, which must not have children: a rank's DataLoader has some
    process = context.Process(target=serve, args=(job, rank, rank_end, sink, listener, inherited))
    process.start()
    rank_end.close()
    sink.close()
    output = ChildOutput(os.fdopen(os.dup(source.fileno()), "rb"), f"rank {rank}")
    source.close()
    return Member(rank, process, channel, output)
