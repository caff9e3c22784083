"""The seam between deciding what is measured and measuring it.

An executor starts workers and has the clock. ``ProcessExecutor`` is the real one. The tests have
one whose workers are simulated and take no time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from perfci.measure.conversation import Worker
from perfci.measure.launch import Launch, SpawnedWorker
from perfci.measure.leftovers import Guardian
from perfci.measure.machine.isolation import isolated
from perfci.measure.machine.quiet import divide
from perfci.measure.processes import AncestorImports, PipeChannel, StarterProcess
from perfci.model.worker import WorkOrder


class Starter(Protocol):
    """A process that forks workers: one side's that has imported a benchmark file, or an ancestor.

    ``preloaded`` is what an ancestor imported, once ``imported`` has returned.
    """

    preloaded: AncestorImports | None

    def imported(self, timeout_s: float) -> str:
        """Wait for its imports. Returns why it can't fork, or nothing. Raises BudgetEnded."""

    def has_imported(self) -> bool:
        """Say whether ``imported`` would answer at once."""

    def move(self, cores: tuple[int, ...]) -> None:
        """Pin it, and so all that it forks, to ``cores``."""

    def alive(self) -> bool:
        """Say whether it still lives: a benchmark can kill its parent."""

    def fork(
        self,
        order: WorkOrder,
        environment: Mapping[str, str],
        *,
        budget_end: float,
        turns: int = -1,
    ) -> Worker:
        """Fork a worker that has ``environment`` besides the starter's."""

    def close(self) -> None:
        """End the starter and whatever it started."""


@dataclass(frozen=True, slots=True)
class OpenStarters:
    """The forking process of each side: a starter of its own, or the ``ancestor`` of that number.

    ``concurrent``: they started at the same time, and cold start is no use. ``fresh_states`` are
    torch's settings in a fresh process of each side, which an ancestor's workers have to have.
    ``meanwhile`` is called between the blocks of their rounds.
    """

    by_side: Mapping[str, Starter]
    concurrent: bool = False
    ancestor: int = 0
    fresh_states: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    meanwhile: Callable[[], None] = lambda: None

    def alive(self) -> bool:
        """Say whether all of them still live."""
        return all(starter.alive() for starter in self.by_side.values())


class Executor(Protocol):
    """Starts workers, and has the clock that budgets and timeouts are of."""

    def now(self) -> float:
        """Return the time in s, of a clock that never goes back."""

    def guarded(
        self, token: str, inherited: Mapping[str, str]
    ) -> AbstractContextManager[tuple[str, ...]]:
        """Open what surrounds a session's foreign code; all with ``token`` ends with this process.

        Yields what to put before its commands.
        """

    def start(
        self,
        order: WorkOrder,
        launch: Launch,
        *,
        budget_end: float,
        log_tail: int = 1 << 16,
        turns: int = -1,
    ) -> Worker:
        """Start a fresh worker; ``log_tail`` bytes of what it printed last are kept.

        ``turns`` is its end of the socket to the other side's worker, -1 for none.
        """

    def starter(self, order: WorkOrder, launch: Launch, *, budget_end: float) -> Starter:
        """Start a starter."""


class ProcessExecutor:
    """The real one: workers are processes, and time goes by."""

    def now(self) -> float:
        """Return the monotonic clock's time."""
        return time.monotonic()

    @contextmanager
    def guarded(self, token: str, inherited: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
        """Keep a guardian next to the session, and foreign code in a namespace where possible.

        Each worker has a part of perfci's cgroup, where that is perfci's alone.
        """
        divided = divide()
        with Guardian(token, divided.leaf, enabled=divided.enabled), isolated(inherited) as enter:
            yield enter

    def start(
        self,
        order: WorkOrder,
        launch: Launch,
        *,
        budget_end: float,
        log_tail: int = 1 << 16,
        turns: int = -1,
    ) -> Worker:
        """Start a fresh process."""
        way = partial(SpawnedWorker, launch, order.root)
        return Worker(order, PipeChannel(way, log_tail=log_tail, turns=turns), budget_end)

    def starter(self, order: WorkOrder, launch: Launch, *, budget_end: float) -> StarterProcess:
        """Start a process that forks."""
        return StarterProcess(order, launch, budget_end=budget_end)
