"""How long GitHub is waited for: a job that sleeps for an hour costs more than its comment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perfci.errors import OutsideError
from perfci.publish.github.failing import Unsure
from perfci.units import format_duration


@dataclass(frozen=True, slots=True)
class Patience:
    """Times in s. ``most`` bounds all waits for one thing together, ``tries`` their number.

    A request that has no answer after ``for_one`` counts as such a wait.
    ``between_requests`` and ``between_writes`` are the pace that GitHub's guide asks for.
    """

    most: float = 120.0
    tries: int = 5
    first_wait: float = 1.0
    between_requests: float = 0.25
    between_writes: float = 1.0
    least_for_one: float = 10.0

    @property
    def for_one(self) -> float:
        """Return how long one request may take: a slow GitHub isn't a broken one."""
        return max(self.most, self.least_for_one)


USUAL = Patience()


class Waiting:
    """The waits for one thing that has to be done in the end."""

    def __init__(self, patience: Patience, sleep: Callable[[float], None]) -> None:
        self._patience = patience
        self._sleep = sleep
        self._failed = 0
        self._waited = 0.0

    def before_next(self, failure: Unsure) -> None:
        """Sleep before the next try; raise ``failure`` where that would be one too many."""
        wait = failure.wait or self._patience.first_wait * 2.0**self._failed
        self._failed += 1
        self._waited += failure.spent
        if self._failed >= self._patience.tries:
            raise OutsideError(
                failure.slug, f"{failure.message}, {self._failed} times over", failure.advice
            ) from failure
        if failure.spent and self._waited >= self._patience.most:
            raise OutsideError(failure.slug, failure.message, failure.advice) from failure
        if self._waited + wait > self._patience.most:
            raise OutsideError(
                failure.slug,
                f"{failure.message}; it would take a wait of {format_duration(wait)}",
                f"Run it again later, or allow more than --patience {self._patience.most:g}s.",
            ) from failure
        self._waited += wait
        self._sleep(wait)
