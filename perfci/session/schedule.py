"""Pure: the order of cases, sides and bursts. Order is a bias: it is drawn, or balanced."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar

from perfci.model.run import CaseRun
from perfci.model.settings import MeasureSettings

T = TypeVar("T")

LEAST_BURSTS = 4
"""Two ABBA blocks at least, so that a linear drift within a round cancels."""
LEAST_CALLS_WHEN_SLOW = 4
LEAD_IN_S = 0.001
"""The first call after a switch took up to 2.2 times a warm one, those after 1 ms 1.0 to 1.15:
``benchmarks/first_calls.py``."""


def visiting_order(cases: Sequence[T], rng: Random) -> tuple[T, ...]:
    """Return one sweep over ``cases`` in an order drawn from ``rng``."""
    order = list(cases)
    rng.shuffle(order)
    return tuple(order)


def visiting_order_by(
    cases: Sequence[T], group: Callable[[T], str], rng: Random
) -> tuple[tuple[T, ...], ...]:
    """Return one sweep over ``cases``, group by group: groups and what is in them are drawn."""
    groups: dict[str, list[T]] = {}
    for case in visiting_order(cases, rng):
        groups.setdefault(group(case), []).append(case)
    return tuple(tuple(groups[name]) for name in visiting_order(sorted(groups), rng))


def starting_order(sides: Sequence[T], round_number: int) -> tuple[T, ...]:
    """Return which side's worker starts first: it alternates from round to round."""
    return tuple(sides) if round_number % 2 else tuple(reversed(sides))


def burst_order(sides: Sequence[T], count: int) -> Iterator[T]:
    """Yield sides as A B B A A B B A … until each has had ``count`` bursts."""
    for index in range(count):
        yield from sides if index % 2 == 0 else reversed(sides)


def burst_count(call_s: float, burst_s: float, round_time_s: float) -> int:
    """Return how many bursts each side gets in a round, given the slower side's call in s.

    Calls longer than a burst make bursts of one call; a slow call is still made a few times.
    """
    if call_s >= round_time_s:
        return LEAST_CALLS_WHEN_SLOW
    blocks = math.ceil(round_time_s / max(burst_s, call_s) / 2.0)
    return max(LEAST_BURSTS, 2 * blocks)  # whole ABBA blocks: else a drift doesn't cancel


def lead_in_s(call_s: float, burst_s: float) -> float | None:
    """Return how long a burst's unrecorded calls take, or None for none.

    A call as long as a burst pays little for the caches, and would pay twice for a lead-in.
    """
    return LEAD_IN_S if call_s < burst_s else None


def least_rounds(rounds: int, compile_rounds: int, *, compiled: bool) -> int:
    """Return a case's minimum: a compiled one also needs rounds that start with a warm cache."""
    return max(rounds, compile_rounds + 3) if compiled else rounds


def least_workers(measured: CaseRun, settings: MeasureSettings) -> int:
    """Return how many workers a session which isn't cut short gives a side of a case."""
    compiled = measured.case.compiled
    return least_rounds(settings.rounds, settings.compile_rounds, compiled=compiled)


def is_whole(measured: CaseRun, settings: MeasureSettings) -> bool:
    """Say whether a case has all of them."""
    return len(measured.workers) >= least_workers(measured, settings)


def has_cold_cache(round_number: int, compile_rounds: int, *, compiled: bool) -> bool:
    """Return whether this round (counted from 1) starts with an empty compile cache.

    The first always does: a benchmark may compile without an axis that says so.
    """
    return round_number == 1 or (compiled and round_number <= compile_rounds)
