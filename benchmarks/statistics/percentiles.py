"""Whether the intervals of p95 and p99 hold, by round, from a worker's samples."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Array, Rng
from benchmarks.statistics.scoring import markdown, percent
from perfci.stats.evidence import paired_evidence, summarise
from perfci.stats.quantile import quantile, samples_needed, tail_quantile

WORKERS_LUCK = 0.005
ROUNDS = 8
QUANTILES = (0.95, 0.99)
FACTORS = (1, 2, 8)
"""Samples a worker, in multiples of what a percentile needs."""
_TRUTH_SAMPLES = 4_000_000
Draw = Callable[[Rng, tuple[int, ...]], Array]


def _lognormal(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rng.normal(0.0, 0.05, shape)


def _mixture(rng: Rng, shape: tuple[int, ...]) -> Array:
    slow = rng.random(shape) < 0.01
    return rng.normal(0.0, 0.02, shape) + np.log(2.0) * slow


def _mixture_of_three(rng: Rng, shape: tuple[int, ...]) -> Array:
    slow = rng.random(shape) < 0.03
    return rng.normal(0.0, 0.02, shape) + np.log(1.5) * slow


def _following(phi: float) -> Draw:
    """Return samples that follow each other: AR(1) with ``phi``, of 5 % spread."""

    def draw(rng: Rng, shape: tuple[int, ...]) -> Array:
        values = rng.normal(0.0, 0.05, shape)
        steps = values * np.sqrt(1.0 - phi**2)
        for index in range(1, shape[-1]):
            values[..., index] = phi * values[..., index - 1] + steps[..., index]
        return values

    return draw


_DRAWS: dict[str, Draw] = {
    "lognormal, 5 %": _lognormal,
    "1 % of samples twice as slow": _mixture,
    "3 % of samples 1.5 times as slow": _mixture_of_three,
    "AR(1) 0.5, 5 %": _following(0.5),
    "AR(1) 0.9, 5 %": _following(0.9),
}
TASKS = tuple(_DRAWS)


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    return [
        _row(task, q, factor * samples_needed(q), runs) for q in QUANTILES for factor in FACTORS
    ]


def _row(task: str, q: float, samples: int, runs: int) -> dict[str, Any]:
    rng = np.random.default_rng([8, round(100 * q), samples, zlib.crc32(task.encode())])
    draw = _DRAWS[task]
    # AR(1)'s marginal is the normal that the first model draws from
    marginal = _lognormal if task.startswith("AR(1)") else draw
    truth = float(np.exp(np.quantile(marginal(rng, (_TRUTH_SAMPLES,)), q)))
    held_ratio = held_side = held_type_7 = 0
    bias = 0.0
    for _ in range(runs):
        shape = (2, ROUNDS, samples)
        luck = rng.normal(0.0, WORKERS_LUCK, (2, ROUNDS, 1))
        workers = np.exp(draw(rng, shape) + luck).tolist()
        base, head = ([tail_quantile(worker, q) for worker in side] for side in workers)
        evidence = paired_evidence(base, head, alpha=0.01)
        summary = summarise(base)
        held_ratio += evidence.ratio_lo <= 1.0 <= evidence.ratio_hi
        held_side += summary.lo <= truth <= summary.hi
        plain = summarise([quantile(worker, q) for worker in workers[0]])
        held_type_7 += plain.lo <= truth <= plain.hi
        bias += summary.center / truth - 1.0
    return {
        "part": "percentiles",
        "samples_are": task,
        "q": q,
        "samples": samples,
        "runs": runs,
        "held_ratio": held_ratio,
        "held_side": held_side,
        "held_side_type_7": held_type_7,
        "bias": round(bias / runs, 6),
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "percentiles"]
    if not mine:
        return ""
    return markdown(
        (
            "samples",
            "percentile",
            "samples a worker",
            "ratio's interval holds, %",
            "side's interval holds, %",
            "with type 7, %",
            "bias of a side, %",
        ),
        [
            (
                row["samples_are"],
                f"p{100 * row['q']:.0f}",
                row["samples"],
                percent(row["held_ratio"], row["runs"]),
                percent(row["held_side"], row["runs"]),
                percent(row["held_side_type_7"], row["runs"]),
                f"{100 * row['bias']:+.2f}",
            )
            for row in mine
        ],
    )
