"""Many damaged inputs to one target, and what became of them."""

from __future__ import annotations

import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import FrameType

from perfci.errors import PerfciError
from tests.fuzz.mutation import damaged
from tests.fuzz.targets import TARGETS

HANG_S = 10.0
_MOST_FAULTS = 20


class Hang(BaseException):
    """An input took longer than any may: BaseException, which nothing catches on the way."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An input that ended in anything but an answer or a refusal."""

    number: int
    content: bytes
    what: str


@dataclass(slots=True)
class Outcome:
    """How many inputs there were, how many were believed and refused, and the others."""

    inputs: int = 0
    believed: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    faults: list[Fault] = field(default_factory=list)


def run(
    name: str, inputs: int, seed: int, *, first: int = 0, within_s: float = float("inf")
) -> Outcome:
    """Hand damaged documents to a target, from number ``first`` on.

    Ends early where many are faults, and when ``within_s`` is over.
    """
    target, outcome = TARGETS[name], Outcome()
    seeds = target.seeds()
    ends = time.monotonic() + within_s
    for number in range(first, first + inputs):
        content = damaged(seeds, Random(f"{name} {seed} {number}"), lines=target.lines)
        before = time.monotonic()
        if before > ends:
            break
        try:
            with _limited(), warnings.catch_warnings():
                warnings.simplefilter("error")
                target.take(content)
            outcome.believed += 1
        except PerfciError as refused:
            outcome.refused += 1
            if not refused.message or refused.slug == "internal":
                outcome.faults.append(Fault(number, content, f"says nothing: {refused!r}"))
        except (Exception, Hang) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {str(error)[:200]} ({place.filename}:{place.lineno})"
            outcome.faults.append(Fault(number, content, what))
        outcome.inputs += 1
        outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - before)
        if len(outcome.faults) >= _MOST_FAULTS:
            break
    return outcome


@contextmanager
def _limited() -> Iterator[None]:
    def late(_: int, __: FrameType | None) -> None:
        raise Hang(f"took more than {HANG_S:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, HANG_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
