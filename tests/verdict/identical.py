"""Made-up workers of identical sides, with a spread that is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from tests.verdict.workers import case

SPREAD = 0.01


def outputs(
    name: str,
    side: str,
    latencies: Sequence[float],
    first_round: int = 1,
    metric: str = "latency_p50",
) -> tuple[WorkerOutput, ...]:
    return tuple(
        WorkerOutput(case=name, side=side, round=number, values={metric: value}, samples=100)
        for number, value in enumerate(latencies, start=first_round)
    )


def identical(
    name: str = "encoder[batch=1]",
    rounds: int = 12,
    *,
    spread: float = SPREAD,
    slow_down: float = 0.0,
    seed: int = 1,
    benchmark: str = "",
) -> tuple[Comparison, ...]:
    """Return the rows of pairs whose log ratios have the standard deviation ``spread``."""
    rng = Random(seed)
    base, head = [], []
    for _ in range(rounds):
        shared = math.exp(rng.gauss(0.0, 0.05))
        base.append(0.001 * shared)
        head.append(0.001 * shared * (1.0 + slow_down) * math.exp(rng.gauss(0.0, spread)))
    return compare_case(
        case(name, benchmark=benchmark or name.partition("[")[0]),
        outputs(name, "base", base),
        outputs(name, "head", head),
        Policy(),
        paired=True,
    )
