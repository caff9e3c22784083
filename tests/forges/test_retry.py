"""Waits between tries grow, keep to what a server asks for, and end."""

from __future__ import annotations

import pytest

from perfci.errors import OutsideError
from perfci.forges.http import Retryable, RetryPolicy, retry


def failure(wait: float | None = None, spent: float = 0.0) -> Retryable:
    return Retryable("x", "it failed", "Look at it.", wait, spent)


def waits(policy: RetryPolicy, *failures: Retryable) -> tuple[list[float], OutsideError]:
    """Return the waits between the tries that fail so, and the error at their end."""
    slept: list[float] = []
    coming = iter(failures)

    def do() -> None:
        raise next(coming)

    with pytest.raises(OutsideError) as caught:
        retry(do, policy, slept.append)
    return slept, caught.value


def test_waits_grow_and_end() -> None:
    slept, error = waits(RetryPolicy(tries=4, first_wait=1.0), *(failure() for _ in range(4)))
    assert slept == [1.0, 2.0, 4.0]
    assert error.message == "it failed, 4 times over"


@pytest.mark.parametrize(
    ("option", "advice"), [("--patience", "more than --patience 120s"), ("", "Look at it.")]
)
def test_a_wait_longer_than_allowed_is_an_error(option: str, advice: str) -> None:
    slept, error = waits(RetryPolicy(most=120.0, option=option), failure(wait=3600.0))
    assert slept == []
    assert "a wait of 1 h 0 min" in error.message
    assert advice in error.advice


def test_all_waits_together_are_bounded() -> None:
    slept, error = waits(RetryPolicy(most=100.0), failure(wait=60.0), failure(wait=60.0))
    assert slept == [60.0]
    assert "a wait of 1 min" in error.message


def test_a_wait_for_an_answer_that_never_came_counts() -> None:
    slept, error = waits(RetryPolicy(most=100.0), failure(spent=60.0), failure(spent=60.0))
    assert slept == [1.0]
    assert error.message == "it failed"


def test_what_may_not_be_tried_again_is_not() -> None:
    tries: list[str] = []
    slept: list[float] = []

    def do() -> None:
        tries.append("try")
        raise failure() if len(tries) < 3 else OutsideError("y", "refused")

    with pytest.raises(OutsideError, match="refused"):
        retry(do, RetryPolicy(), slept.append, lambda: tries.append("look"))
    assert tries == ["try", "look", "try"]
    assert slept == [1.0]
