"""Pure: the order of cases, sides and bursts. Order is a bias: it is drawn, or balanced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from perfci.model.run import CaseRun
from perfci.model.settings import MeasureSettings

T = TypeVar("T")

LEAST_BURSTS = 4
"""A side has so many, and so as many slow calls."""
LEAD_IN_PART = 5
"""One in so many calls of a burst is made to refill the caches, and not recorded."""
LONG_CALL_S = 0.005
"""Such a call pays little for what the other side left in the caches, and would pay twice for one
more. Of shorter ones none is recorded that is the first after a switch."""
BLOCK_S = 0.05
"""What a side measures before the parent looks at it."""
SAMPLE_S = 3e-7
"""What a sample takes besides its call."""


@dataclass(frozen=True, slots=True)
class Turns:
    """What each side does in a round: ``blocks``, each of ``bursts`` in turn with the other side.

    A burst is ``lead_in`` calls that are not recorded, then ``calls`` that are.
    """

    calls: int
    lead_in: int
    bursts: int
    blocks: int

    def block_s(self, call_s: float) -> float:
        """Return how long one side is at it in one block."""
        return self.bursts * (self.lead_in + self.calls) * (call_s + SAMPLE_S)


def turns(call_s: float, burst_s: float, round_time_s: float) -> Turns:
    """Return the turns of a round, given the slower side's call in s.

    Both sides make the same calls: bursts of a given time would, at a call of about that time, be
    of one cold call on one side and of a warm second one on the other.
    """
    call_s += SAMPLE_S
    fit = max(1, int(burst_s / call_s))
    lead_in = math.ceil(fit / LEAD_IN_PART) if call_s < LONG_CALL_S else 0
    calls = max(1, fit - lead_in)
    bursts = max(LEAST_BURSTS, math.ceil(round_time_s / (calls * call_s)))
    pairs_of_blocks = min(math.ceil(bursts * calls * call_s / BLOCK_S / 2.0), bursts // 4)
    blocks = 2 * max(1, pairs_of_blocks)
    return Turns(calls, lead_in, math.ceil(bursts / blocks), blocks)


def visiting_order(cases: Sequence[T], rng: Random) -> tuple[T, ...]:
    """Return one sweep over ``cases`` in an order drawn from ``rng``."""
    order = list(cases)
    rng.shuffle(order)
    return tuple(order)


def visiting_order_by(
    cases: Sequence[T], group: Callable[[T], tuple[str, ...]], rng: Random
) -> tuple[tuple[T, ...], ...]:
    """Return one sweep over ``cases``, group by group: groups and what is in them are drawn."""
    groups: dict[tuple[str, ...], list[T]] = {}
    for case in visiting_order(cases, rng):
        groups.setdefault(group(case), []).append(case)
    return tuple(tuple(groups[name]) for name in visiting_order(sorted(groups), rng))


def starting_order(sides: Sequence[T], round_number: int) -> tuple[T, ...]:
    """Return which side's worker starts first: it alternates from round to round."""
    return tuple(sides) if round_number % 2 else tuple(reversed(sides))


def block_order(sides: Sequence[T], block: int) -> tuple[T, ...]:
    """Return who begins a block, counted from 0, and who is second: it alternates."""
    return tuple(reversed(sides)) if block % 2 else tuple(sides)


def least_rounds(rounds: int, compile_rounds: int, *, compiled: bool) -> int:
    """Return a case's minimum: a compiled one needs as many that start with a warm cache."""
    return compile_rounds + max(rounds, 3) if compiled else rounds


def least_workers(measured: CaseRun, settings: MeasureSettings) -> int:
    """Return how many workers a session which isn't cut short gives a side of a case."""
    compiled = measured.case.compiled
    return least_rounds(settings.rounds, settings.compile_rounds, compiled=compiled)


def is_whole(measured: CaseRun, settings: MeasureSettings) -> bool:
    """Say whether a case has all of them."""
    return len(measured.workers) >= least_workers(measured, settings)


def has_cold_cache(round_number: int, compile_rounds: int, *, compiled: bool) -> bool:
    """Return whether this round (counted from 1) starts with an empty compile cache.

    The first always does: a benchmark may compile without an axis that says so. So does round 0,
    which is not measured.
    """
    return round_number <= 1 or (compiled and round_number <= compile_rounds)
