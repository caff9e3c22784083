"""Commands for an engine to run, and the engine's reports on them. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Phase = Literal["absent", "waiting", "running", "ended"]
"""``absent``: never submitted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An array of commands that run in ``folder``; the first one is number 1.

    Each leaves a report in its own file, named by ``reports``. ``time_limit_s`` is what one of
    them may take. ``engine`` is which one has them run: another could not find them again.
    ``configuration`` is a mark of the one that they are run under.
    """

    folder: str
    commands: tuple[tuple[str, ...], ...]
    reports: tuple[str, ...]
    time_limit_s: float
    engine: str = ""
    configuration: str = ""

    @property
    def numbers(self) -> range:
        """The commands' numbers."""
        return range(1, len(self.commands) + 1)


@dataclass(frozen=True, slots=True)
class CommandState:
    """State of one command. ``why`` is the reason of its end, or what it waits for."""

    phase: Phase
    why: str = ""


class Engine(Protocol):
    """Runs a plan's commands. What finds them again after a kill lies in the job's folder."""

    @property
    def settle_s(self) -> float:
        """Return the longest delay until the report of a command that ended can be seen."""

    def submit(self, plan: Plan, numbers: Sequence[int]) -> None:
        """Have the commands of these numbers run, each once."""

    def poll(self, plan: Plan) -> Mapping[int, CommandState]:
        """Return where each command of ``plan`` is."""

    def cancel(self, plan: Plan) -> None:
        """Have those end that haven't yet, with what they have measured so far."""


def mark_of(*words: object) -> str:
    """Return a name that only the same plan has."""
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:12]


_SET_UP_S = 600.0
"""For a node's first check-out and build, and for the report."""


def time_limit_s(durations: Mapping[str, float], shards: int, budget_s: float) -> float:
    """Return what one of ``shards`` may take: its budget, or twice what its cases took before.

    The fullest shard has at most 4/3 of an even share, and never less than the longest case.
    """
    known = budget_s
    if durations:
        even = sum(durations.values()) / shards
        known = 2.0 * max(4.0 / 3.0 * even, *durations.values())
    return min(budget_s, known) + _SET_UP_S


@dataclass(frozen=True, slots=True)
class MachineSlot:
    """A command's own part of a machine: its ``cores``, and a GPU if it has one."""

    cores: tuple[int, ...]
    device: str = ""


def slots(
    cores: Sequence[Sequence[int]], devices: Sequence[str], *, workers: int, concurrent: int
) -> tuple[MachineSlot, ...]:
    """Return equal parts of a machine: ``concurrent`` of them, or as many as fit where that is 0.

    Each of ``cores`` is a physical one, which is never split. ``workers`` is the number of cores
    that a session pins its workers to. One more is for perfci itself. One GPU serves one command.
    """
    own = devices if len(devices) > 1 else ()
    needed = math.ceil((workers + 1) / min(map(len, cores)))
    fit = max(1, len(cores) // needed)
    count = min(concurrent or (min(fit, len(own)) if own else 1 if devices else fit), len(cores))
    size = len(cores) // count if concurrent else min(needed, len(cores))
    return tuple(
        MachineSlot(
            tuple(core for each in cores[size * at : size * (at + 1)] for core in each),
            own[at % len(own)] if own else "",
        )
        for at in range(count)
    )


def minutes(seconds: float) -> int:
    """Return whole minutes, rounded up."""
    return math.ceil(seconds / 60.0)
