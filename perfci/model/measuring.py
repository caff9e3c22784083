"""The settings of measuring, and what the parent makes of a worker's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfci.model.case import Failure
from perfci.model.worker import WorkerReading

INJECTABLE = ("latency", "cold_start", "compile_time", "peak_host_memory")
"""Metrics that can be made worse on purpose, to test the gate."""
MOST_INJECTED = 10.0
"""Largest share of base by which such a metric can be made worse: 1000 %."""
DECIDING_ROUNDS = 5
"""Fewest rounds for an interval and a verdict: fewer may agree by chance, and look like certainty.
If processes run at two speeds, intervals of two rounds hold in 86 % instead of 95. Of cases slower
by twice the threshold, 0.4 % pass for unchanged with four rounds, 0.1 % with five
(docs/statistics.md)."""
AGREEING_ROUNDS = 2
"""Rounds that measure exact metrics. If their workers agree, later rounds don't measure them."""
ROUNDS_OF_AN_ANCESTOR = 2
"""Rounds of one case that share an ancestor. In the least number of rounds, which come first, each
has an ancestor of its own. See docs/results/stopping.md."""


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
    ``ancestor`` is the number, within the session, of the process that both workers of the round
    were forked from. It is 0 if they have no common ancestor.
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
    ancestor: int = 0


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """A worker that ended without an output."""

    round: int
    failure: Failure


WorkerResult = WorkerOutput | WorkerFailure


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """Settings of measuring. Times are in s, memory in bytes.

    ``rounds`` is the least number of rounds of a case and ``max_rounds`` the most.
    ``compile_rounds`` of them start with an empty compile cache. ``budget`` bounds the whole
    session, ``timeout`` each step of a worker. A worker takes bursts of ``burst`` s until it
    has ``round_time`` s of them. ``threads`` 0: as many as there are. ``cores`` 0: chosen
    automatically. ``memory_limit`` 0: no limit.
    ``residency`` is ``together`` if
    both sides' workers of a round live at once, and ``alternate`` if one lives after the other.

    The last field can't be configured. ``inject`` makes ``INJECTABLE`` metrics of head worse on
    purpose, by shares.
    """

    rounds: int = 5
    max_rounds: int = 20
    compile_rounds: int = 1
    budget: float = 600.0
    round_time: float = 0.3
    burst: float = 0.0025
    warmup: float = 2.0
    timeout: float = 300.0
    seed: int = 0
    threads: int = 0
    cores: int = 0
    memory_limit: int = 0
    residency: str = "together"
    inject: Mapping[str, float] = field(default_factory=dict)
