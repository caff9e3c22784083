"""Waits between tries grow, keep to what a server asks for, and end."""

from __future__ import annotations

import pytest

from perfci.errors import OutsideError
from perfci.forges.http import Backoff, Retryable, RetryPolicy, retry


def failure(wait: float | None = None, spent: float = 0.0) -> Retryable:
    return Retryable("x", "it failed", "Look at it.", wait, spent)


def test_waits_grow_and_end() -> None:
    backoff = Backoff(RetryPolicy(tries=4, first_wait=1.0))
    assert [backoff.delay(failure()) for _ in range(3)] == [1.0, 2.0, 4.0]
    with pytest.raises(OutsideError, match="it failed, 4 times over"):
        backoff.delay(failure())


@pytest.mark.parametrize(
    ("option", "advice"), [("--patience", "more than --patience 120s"), ("", "Look at it.")]
)
def test_a_wait_longer_than_allowed_is_an_error(option: str, advice: str) -> None:
    backoff = Backoff(RetryPolicy(most=120.0, option=option))
    with pytest.raises(OutsideError, match="a wait of 1 h 0 min") as caught:
        backoff.delay(failure(wait=3600.0))
    assert advice in caught.value.advice


def test_all_waits_together_are_bounded() -> None:
    backoff = Backoff(RetryPolicy(most=100.0))
    assert backoff.delay(failure(wait=60.0)) == 60.0
    with pytest.raises(OutsideError, match="a wait of 1 min"):
        backoff.delay(failure(wait=60.0))


def test_a_wait_for_an_answer_that_never_came_counts() -> None:
    backoff = Backoff(RetryPolicy(most=100.0))
    assert backoff.delay(failure(spent=60.0)) == 1.0
    with pytest.raises(OutsideError) as caught:
        backoff.delay(failure(spent=60.0))
    assert caught.value.message == "it failed"


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
