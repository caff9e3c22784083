"""The ranks of a side as one: orders to all, their answers, and the blame where one fails."""

from __future__ import annotations

import contextlib
import select
import time
import weakref
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from perfci.api.ranks.member import (
    GRACE_S,
    LAST_WORDS_S,
    RAISED,
    Member,
    Started,
    Trouble,
    answer_of,
    death_of,
)
from perfci.api.ranks.output import standing, why_hanging
from perfci.collecting import OutputSketch, Steps
from perfci.errors import Unusable

_STACK_S = 5.0
"""How long a rank that hangs may take to write where it is: a node may be busy, or far."""
_LONGEST_POLL_MS = 2**31 - 1


class Group:
    """The ranks of a side. A call is one step of each, begun together, until the last has ended."""

    def __init__(self, world: int, timeout: float, start: Callable[[Started], None]) -> None:
        self._world = world
        self._timeout = timeout
        self._started = Started()
        self._members = self._started.members
        weakref.finalize(self, self._started.end)
        start(self._started)
        self._by_number: dict[int, Member] = {}
        self._poll = select.poll()
        for member in self._members:
            self._by_number[member.channel.fileno()] = member
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
        """Return the most memory of each rank, by metric."""
        return self._all("peaks")

    def inspected(self, count: int) -> Sequence[Steps]:
        """Return what ``count`` more steps of each rank are like."""
        return self._all("inspected", count, times=count)

    def outputs(self) -> Sequence[OutputSketch]:
        """Return a sketch of what one more step of each rank returns."""
        return self._all("outputs")

    def _all(self, order: str, *arguments: Any, times: int = 1) -> list[Any]:
        """Have every rank do as ``order`` says, and return what each answers."""
        for member in self._members:
            with contextlib.suppress(OSError):  # it died: its channel says so next
                member.channel.send((order, *arguments))
        return self._answers(times * self._timeout)

    def _answers(self, within_s: float | None) -> list[Any]:
        """Return what each rank answers. Unusable, by the rank's name, where one can't."""
        answers: dict[int, Any] = {}
        until = time.monotonic() + (within_s or 0.0)
        while len(answers) < self._world:
            left_ms = min(_LONGEST_POLL_MS, max(0.0, until - time.monotonic()) * 1e3)
            ready = self._poll.poll(None if within_s is None else left_ms)
            if not ready:
                raise self._hanging(answers)
            for number, _ in ready:
                member = self._by_number[number]
                answer = answer_of(member)
                if isinstance(answer, Trouble):
                    raise self._failure(answer)
                answers[member.rank] = answer
        return [answers[rank] for rank in range(self._world)]

    def _failure(self, first: Trouble) -> Unusable:
        """Return the failure of the rank that is to blame, and end all of them."""
        troubles = [first]
        until = time.monotonic() + GRACE_S
        while (left_s := until - time.monotonic()) > 0 and len(troubles) < self._world:
            for number, _ in self._poll.poll(left_s * 1e3):
                self._poll.unregister(number)  # one that died is ready for ever
                answer = answer_of(self._by_number[number])
                if isinstance(answer, Trouble) and answer.rank != first.rank:
                    troubles.append(answer)
        worst = min([*troubles, *self._deaths({one.rank for one in troubles})])
        member = self._members[worst.rank]
        place = f"rank {worst.rank} of {self._world}{member.on_host}"
        text = f"{place}, in its {self._act}, {worst.said}"
        words = member.output.last_words(LAST_WORDS_S, worst.said.removeprefix(RAISED))
        said = f"{text}:\n{words}" if words else text
        said += self._started.launcher_said()
        self._started.end(within_s=0.0)
        return Unusable(worst.kind, said)

    def _hanging(self, answered: Container[int]) -> Unusable:
        """Return what the ranks that have not answered wait for, and end all of them."""
        if deaths := self._deaths(answered):
            return self._failure(min(deaths))
        late = [one for one in self._members if one.rank not in answered]
        for member in late:
            member.process.show()
        stand = [standing(one.rank, one.on_host, one.output.stack(_STACK_S)) for one in late]
        self._started.end(within_s=0.0)
        return Unusable(*why_hanging(stand, self._world, self._act, self._timeout))

    def _deaths(self, but: Container[int]) -> list[Trouble]:
        """Return who died without a word: its channel stays open as long as a child holds it."""
        others = (one for one in self._members if one.rank not in but)
        return [death_of(one) for one in others if one.process.exitcode]
