"""Pure but for ``retry``'s sleep: whether and when what failed is tried again.

Waits are bounded: a job that sleeps for an hour costs more than its comment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from perfci.errors import OutsideError
from perfci.units import format_duration

T = TypeVar("T")


class Retryable(OutsideError):
    """It may be tried again.

    ``wait`` is what the server asks for in s, None where it names nothing; ``spent`` how long an
    answer was already waited for in vain.
    """

    def __init__(
        self,
        slug: str,
        message: str,
        advice: str = "",
        wait: float | None = None,
        spent: float = 0.0,
    ) -> None:
        super().__init__(slug, message, advice)
        self.wait = wait
        self.spent = spent


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Times in s. ``most`` bounds all waits for one thing together, ``tries`` their number.

    ``timeout`` is for one try as a whole, and a try that had no answer counts as such a wait.
    ``option`` is what a user sets ``most`` by.
    """

    most: float = 120.0
    tries: int = 5
    first_wait: float = 1.0
    timeout: float = 15.0
    option: str = ""


class Backoff:
    """The waits for one thing that has to be done in the end."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._failed = 0
        self._waited = 0.0

    def delay(self, failure: Retryable) -> float:
        """Return the wait in s before the next try; OutsideError where that would be too much."""
        policy = self._policy
        wait = failure.wait
        if wait is None:
            wait = policy.first_wait * 2.0**self._failed
        self._failed += 1
        self._waited += failure.spent
        if self._failed >= policy.tries:
            raise OutsideError(
                failure.slug, f"{failure.message}, {self._failed} times over", failure.advice
            ) from failure
        if failure.spent and self._waited >= policy.most:
            raise OutsideError(failure.slug, failure.message, failure.advice) from failure
        if self._waited + wait > policy.most:
            longer = f"Run it again later, or allow more than {policy.option} {policy.most:g}s."
            raise OutsideError(
                failure.slug,
                f"{failure.message}; it would take a wait of {format_duration(wait)}",
                longer if policy.option else failure.advice,
            ) from failure
        self._waited += wait
        return wait


def retry(
    do: Callable[[], T],
    policy: RetryPolicy,
    sleep: Callable[[float], None],
    before_again: Callable[[], object] = lambda: None,
) -> T:
    """Return what ``do`` returns; it is done again, after ``before_again``, where it may be."""
    backoff = Backoff(policy)
    while True:
        try:
            return do()
        except Retryable as failure:
            sleep(backoff.delay(failure))
        before_again()
