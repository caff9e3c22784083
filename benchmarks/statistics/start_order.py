"""Cold starts that read slower on the side that starts first: what balances that, and its price."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Array
from benchmarks.statistics.scoring import markdown, percent, rng_of
from perfci.stats.evidence import look_confidence
from perfci.stats.t_tests import mean, t_quantile, variance

EFFECT = 0.027
"""Between odd and even rounds, as it was measured: base starts first in odd ones."""
SPREADS = (0.02, 0.05, 0.10)
"""Of a pair of cold starts, beside that."""
MOST = 20
Interval = Callable[[Sequence[float], Array], tuple[float, float, int]]
"""Maps (log ratios, each round's order: 1 or -1) to the estimate, its standard error and df."""


def plain(ratios: Sequence[float], _: Array) -> tuple[float, float, int]:
    """Return the rounds' mean: the rule."""
    count = len(ratios)
    return mean(ratios), math.sqrt(variance(ratios) / count), count - 1


def balanced(ratios: Sequence[float], order: Array) -> tuple[float, float, int]:
    """Return the mean of odd and of even rounds, weighted alike; the spread is that of all."""
    odd, even = _by_order(ratios, order)
    _, se, df = plain(ratios, order)
    wider = math.sqrt((1 / len(odd) + 1 / len(even)) / 4 * len(ratios))
    return (mean(odd) + mean(even)) / 2, wider * se, df


def with_term(ratios: Sequence[float], order: Array) -> tuple[float, float, int]:
    """Return the same with the order's effect taken out of the spread, for a degree of freedom.

    Least squares of ``d = μ + γ s`` with s = ±1 (Jones & Kenward 2014, Design and Analysis of
    Cross-Over Trials, 2.3: AB/BA).
    """
    groups = _by_order(ratios, order)
    rest = sum((value - mean(group)) ** 2 for group in groups for value in group)
    df = len(ratios) - 2
    shares = sum(1 / len(group) for group in groups) / 4
    return sum(map(mean, groups)) / 2, math.sqrt(rest / df * shares), df


def _by_order(ratios: Sequence[float], order: Array) -> tuple[list[float], list[float]]:
    pairs = list(zip(ratios, order.tolist(), strict=True))
    return [r for r, first in pairs if first > 0], [r for r, first in pairs if first < 0]


DESIGNS: dict[str, tuple[int, Interval]] = {
    "five rounds (the rule)": (5, plain),
    "five rounds, odd and even weighted alike": (5, balanced),
    "five rounds, a term of the order": (5, with_term),
    "six rounds": (6, plain),
    "six rounds, a term of the order": (6, with_term),
}
TASKS = tuple(f"order: {name}" for name in DESIGNS)


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    name = task.removeprefix("order: ")
    return [_row(name, spread, runs) for spread in SPREADS]


def _row(name: str, spread: float, runs: int) -> dict[str, Any]:
    count, interval = DESIGNS[name]
    order = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    drawn = rng_of("order", str(spread)).normal(0.0, spread, (runs, MOST))[:, :count]
    upper = 0.5 + look_confidence(count, MOST) / 2
    estimates, widths, held = [], [], 0
    for ratios in (drawn - order * EFFECT / 2).tolist():
        estimate, se, df = interval(ratios, order)
        half_width = t_quantile(upper, df) * se
        held += abs(estimate) <= half_width
        estimates.append(estimate)
        widths.append(half_width)
    return {
        "part": "order",
        "design": name,
        "spread": spread,
        "runs": runs,
        "held": held,
        "bias": float(np.mean(estimates) - np.mean(drawn)),
        "half_width": float(np.median(widths)),
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "order"]
    if not mine:
        return ""
    cells = {(row["design"], row["spread"]): row for row in mine}
    lines = [
        (
            name,
            f"{100 * cells[name, SPREADS[0]]['bias']:+.2f}",
            *(
                f"{percent(row['held'], row['runs'])}; {100 * row['half_width']:.1f}"
                for row in (cells[name, spread] for spread in SPREADS)
            ),
        )
        for name in DESIGNS
    ]
    head = ("design", "bias, %", *(f"spread of a pair {spread:.0%}" for spread in SPREADS))
    return markdown(head, lines)
