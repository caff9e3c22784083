"""A rank as its worker sees it: its answers, its output, and how it failed or ended."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from perfci.api import how_it_ended
from perfci.api.distributed.orders import RankTrouble
from perfci.api.distributed.rank import WHERE_IT_IS

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

GRACE_S = 0.5
"""Time after a first failure in which another may show up that caused it."""
LAST_WORDS_S = 0.2
"""Time for a rank's last output to arrive."""
END_S = 1.0
"""Time for ranks that wait for an order to end by themselves."""
_DIED_NS = 0
"""Time given to a death. It sorts before other ranks' exceptions, which the death has caused."""
_MOST_LINES, _LONGEST = 200, 4000
"""Most lines of output that are kept, and most bytes of a line."""
_LAST_LINES = 12
"""Most lines of output in a message."""
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')
"""A frame in a stack that ``faulthandler`` wrote."""
_LIBRARY = re.compile(r"/(site-packages|lib/python3[.\d]+)/|^<")
"""Matches files that aren't user code."""
_WAITS = ("/torch/distributed/", "/torch/autograd/graph.py")
"""Code in which a rank waits for others: a collective, or a backward that makes collectives."""
_INNERMOST = 4
"""Innermost frames in which the code of ``_WAITS`` is looked for."""
_STACK = "most recent call first"
"""Part of the line that ``faulthandler`` writes before a stack."""
_POLL_S, _WRITING_S = 0.01, 0.2
"""Time between two looks for a stack, and time for the rest of a stack to be written."""


@dataclass(frozen=True, slots=True)
class ChildRank:
    """The process of a rank that is the worker's child."""

    process: BaseProcess

    @property
    def exitcode(self) -> int | None:
        """Return the rank's exit code, negative for a signal. None while it lives."""
        return self.process.exitcode

    def join(self, within_s: float) -> None:
        """Wait for the rank's end, for ``within_s`` at most."""
        self.process.join(within_s)

    def kill(self) -> None:
        """Kill the rank, and wait for its end."""
        self.process.kill()
        self.process.join()

    def show(self) -> None:
        """Have the rank write its main thread's stack to standard error, whatever it waits for."""
        os.kill(self.process.pid or 0, WHERE_IT_IS)


@dataclass(slots=True)
class Member:
    """A rank, as its process, its channel and its output."""

    rank: int
    process: ChildRank
    channel: Connection
    output: RankOutput


def answer_of(member: Member) -> Any:
    """Return a rank's answer, or a ``RankTrouble`` if it failed or died."""
    try:
        answer = member.channel.recv()
    except (EOFError, OSError):
        member.process.join(GRACE_S)
        return death_of(member)
    return answer


def death_of(member: Member) -> RankTrouble:
    """Return how a rank ended."""
    return RankTrouble(_DIED_NS, member.rank, "rank_died", _how_ended(member.process.exitcode))


def _how_ended(code: int | None) -> str:
    if code is None:
        return "closed its connection to perfci"
    return how_it_ended(code) if code < 0 else f"left with exit code {code}"


@dataclass(slots=True)
class StartedRanks:
    """The ranks started so far."""

    members: list[Member] = field(default_factory=list)

    def end(self, within_s: float = END_S) -> None:
        """Close the channels, so that ranks which wait for an order end. Kill the others.

        A rank that ends by itself, unlike one that is killed, reports what code it ran.
        """
        for member in self.members:
            member.channel.close()
        until = time.monotonic() + within_s
        for member in self.members:
            member.process.join(max(0.0, until - time.monotonic()))
            if member.process.exitcode is None:
                member.process.kill()
            # waits for the output's thread to end, because a later group may need to fork
            member.output.lines(LAST_WORDS_S)


class RankOutput:
    """Reads one rank's standard streams in a thread, and keeps the last lines.

    Each line is also written to the log, after ``whose`` in brackets.
    """

    def __init__(self, whose: str, source: Connection) -> None:
        self._mark = f"[{whose}] ".encode()
        self._source = source
        self._last: deque[str] = deque(maxlen=_MOST_LINES)
        self._thread = Thread(target=self._run, name=f"perfci {whose}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def lines(self, within_s: float) -> list[str]:
        """Wait for the output's end, for ``within_s`` at most. Return the last lines."""
        self._thread.join(within_s)
        return list(self._last)

    def stack(self, within_s: float) -> list[str]:
        """Wait for a stack in the last lines, for ``within_s`` at most. Return the last lines."""
        until = monotonic() + within_s
        while not any(_STACK in line for line in list(self._last)):
            if monotonic() > until or not self._thread.is_alive():
                break
            self._thread.join(_POLL_S)
        return self.lines(_WRITING_S)

    def last_lines(self, within_s: float) -> list[str]:
        """Do as ``lines``, but return only the last few lines."""
        return self.lines(within_s)[-_LAST_LINES:]

    def last_words(self, within_s: float, known: str) -> str:
        """Return the last few lines, without the lines that repeat ``known``.

        If there was no output at all, return a sentence that says so.
        """
        lines = self.lines(within_s)
        if not lines:
            return "it wrote nothing to its output"
        return "\n".join(_without(lines, known)[-_LAST_LINES:])

    def _run(self) -> None:
        with os.fdopen(os.dup(self._source.fileno()), "rb") as lines:
            self._source.close()
            while line := lines.readline(_LONGEST):
                self._last.append(line.decode("utf-8", "replace").rstrip())
                with contextlib.suppress(OSError):  # the benchmark closed the worker's stderr
                    os.write(2, self._mark + line.rstrip(b"\n") + b"\n")


def _without(lines: list[str], known: str) -> list[str]:
    """Return ``lines`` without the last ones that say ``known``, which may be broken into lines."""
    for size in range(1, _LAST_LINES):
        for at in range(len(lines) - size, -1, -1):
            text = " ".join(" ".join(lines[at : at + size]).split())
            if text.removesuffix(":") == known:
                return lines[:at] + lines[at + size :]
    return lines


@dataclass(frozen=True, slots=True)
class RankStanding:
    """A rank's ``place`` in the user's code, and whether it ``waits`` for other ranks."""

    rank: int
    place: str
    waits: bool


def standing(rank: int, lines: list[str]) -> RankStanding:
    """Return where ``rank`` stands, by the last stack of ``faulthandler`` in ``lines``."""
    stacks = [number for number, line in enumerate(lines) if _STACK in line]
    last = lines[stacks[-1] :] if stacks else []
    frames = [match.groups() for line in last if (match := _FRAME.match(line))]
    if not frames:
        return RankStanding(rank, "a place that isn't known", waits=False)
    user_frames = [frame for frame in frames if not _LIBRARY.search(frame[0])] or frames
    file, line, function = user_frames[0]
    waits = any(part in path for path, _, _ in frames[:_INNERMOST] for part in _WAITS)
    return RankStanding(rank, f"{file}:{line} in {function}", waits)


def hanging_failure(
    stand: list[RankStanding], world: int, act: str, within_s: float
) -> tuple[str, str]:
    """Return the kind of failure, and a sentence about the ranks that have not ended ``act``."""
    stuck = [rank for rank in stand if not rank.waits]
    waiting = [rank for rank in stand if rank.waits]
    if stuck:
        first_place = "; ".join(f"it is at {rank.place}" for rank in stuck[:1])
        also = "".join(f"; rank {rank.rank} is at {rank.place}" for rank in stuck[1:])
        also += "".join(f"; rank {rank.rank} waits at {rank.place}" for rank in waiting)
        first = f"rank {stuck[0].rank} of {world} has not ended its {act}"
        return "rank_hung", f"{first} in {within_s:g} s: {first_place}{also}"
    ended = sorted(set(range(world)) - {rank.rank for rank in stand})
    waits = "; ".join(
        f"rank {rank.rank} waits for a collective at {rank.place}" for rank in waiting
    )
    if ended:
        names = ", ".join(map(str, ended))
        which = f"rank {names} has" if len(ended) == 1 else f"ranks {names} have"
        return "ranks_diverged", f"{which} ended the {act} without it: {waits}"
    return "ranks_diverged", f"all ranks wait for collectives that don't match: {waits}"
