"""A rank as its worker sees it, whatever started it: what it answers, how it failed or ended."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

from perfci.api.ranks.output import RankOutput
from perfci.api.ranks.rank import Raised

GRACE_S = 0.5
"""What else goes wrong within it may be the reason for what was seen first."""
LAST_WORDS_S = 0.2
END_S = 1.0
"""How long ranks that wait for an order may take to end, and threads that have ended to be gone."""
RAISED = "raised "
_DIED_NS = 0
"""A death comes before what others raised: their collectives fail for it."""


class Process(Protocol):
    """The process of a rank, wherever it runs."""

    @property
    def exitcode(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives, or where nobody knows."""

    def join(self, within_s: float) -> None:
        """Wait for its end."""

    def kill(self) -> None:
        """Kill it, and wait for its end."""

    def show(self) -> None:
        """Have it write to standard error where its main thread is, whatever it waits for."""


@dataclass(slots=True)
class Member:
    """``host`` is the node of a launched rank; ``ahead_ns`` by how much its clock is ahead."""

    rank: int
    process: Process
    channel: Connection
    output: RankOutput
    host: str = ""
    ahead_ns: int = 0

    @property
    def on_host(self) -> str:
        """Where it runs, as a part of a sentence."""
        return f" on {self.host}" if self.host else ""


@dataclass(frozen=True, slots=True, order=True)
class Trouble:
    """Why a rank can't go on. Of several the least is the reason."""

    when_ns: int
    rank: int
    kind: str
    said: str


def answer_of(member: Member) -> Any:
    """Return what a rank has answered, or a ``Trouble``."""
    try:
        answer = member.channel.recv()
    except (EOFError, OSError):  # of a node that is gone the kernel says "timed out"
        member.process.join(GRACE_S)
        return death_of(member)
    if isinstance(answer, Raised):
        when_ns = answer.when_ns - member.ahead_ns
        return Trouble(when_ns, member.rank, "rank_raised", f"{RAISED}{answer.said}")
    return answer


def death_of(member: Member) -> Trouble:
    """Return how a rank ended."""
    return Trouble(_DIED_NS, member.rank, "rank_died", _how_ended(member.process.exitcode))


def _how_ended(code: int | None) -> str:
    if code is None:
        return "closed its connection to perfci"
    if code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"left with exit code {code}"


class Launcher(Protocol):
    """What started ranks that are no children."""

    def said(self) -> str:
        """Return its last lines; nothing where it said none."""

    def end(self) -> None:
        """Wait a little for its end, which its ranks' ends should bring, or kill it."""


@dataclass(slots=True)
class Started:
    """The ranks that were started so far, and by what, where they aren't the worker's children."""

    members: list[Member] = field(default_factory=list)
    launcher: Launcher | None = None

    def launcher_said(self) -> str:
        """Return the launcher's last lines, as the end of a message."""
        said = self.launcher.said() if self.launcher else ""
        return f"\nIts launcher said:\n{said}" if said else ""

    def end(self, within_s: float = END_S) -> None:
        """End them: by themselves, if they wait for an order, so that the watch hears of it."""
        for member in self.members:
            member.channel.close()
        until = time.monotonic() + within_s
        for member in self.members:
            member.process.join(max(0.0, until - time.monotonic()))
            if member.process.exitcode is None:
                member.process.kill()
            member.output.lines(LAST_WORDS_S)  # its thread ends: a later group may want to fork
        if self.launcher:
            self.launcher.end()
