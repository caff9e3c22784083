"""Numbers of rounds, and what the parent makes of a worker's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfci.model.case import Failure
from perfci.model.worker import WorkerReading

DECIDING_ROUNDS = 5
"""Fewest rounds for an interval and a verdict: fewer may agree by chance, and look like certainty.
If processes run at two speeds, intervals of two rounds hold in 86 % instead of 95. Of cases slower
by twice the threshold, 0.4 % pass for unchanged with four rounds, 0.1 % with five
(docs/statistics.md)."""
MOST_ROUNDS = 20
"""Most rounds of a case, unless configured."""
AGREEING_ROUNDS = 2
"""Rounds that measure exact metrics. If their workers agree, later rounds don't measure them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOutput(WorkerReading):
    """One worker's measurement of one case: each metric reduced to one value.

    ``quantiles`` are the latency in s at 0, 1, 5, 25, 50, 75, 95, 99, 100 %.
    ``beside`` is made from ``bursts`` for the metrics that both workers of a round have bursts of:
    the log of this worker's value ÷ the other worker's, over bursts that ran side by side.
    ``bursts`` is emptied then.
    ``bursts_measured`` counts all bursts, and ``bursts_set_aside`` those of them that were
    excluded. ``bursts_disturbed`` were disturbed but kept, because most of the worker's bursts
    were disturbed. ``disturbance`` is the commonest reason for either.
    ``bursts_delayed`` counts the bursts that the kernel kept off their core, excluded or not.
    ``with_delayed`` has the metrics whose values differ if delayed bursts are kept. Baselines don't
    store ``bursts``, ``bursts_delayed`` and ``with_delayed``.
    ``server`` is the number, within the session, of the fork server of both workers of the round,
    0 without one.
    """

    case: str
    side: str
    round: int
    samples: int
    quantiles: tuple[float, ...] = ()
    bursts_measured: int = 0
    bursts_set_aside: int = 0
    bursts_disturbed: int = 0
    disturbance: str = ""
    bursts_delayed: int = 0
    with_delayed: Mapping[str, float] = field(default_factory=dict)
    beside: Mapping[str, float] = field(default_factory=dict)
    server: int = 0


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """A worker that ended without an output."""

    round: int
    failure: Failure


WorkerResult = WorkerOutput | WorkerFailure
