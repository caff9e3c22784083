"""How often a quiet series gets a false change, and from how many nights a step is named.

    PYTHONPATH=. python benchmarks/trend/critical_values.py

AR(1) series without any change, of several lengths and rho: significance.py's constants were fitted
so that the share of series with a change is about alpha or less. And short series with one step.
Prints Markdown tables, and keeps all counts in ``results/critical_values.json``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.trend.synthetic import LEVEL, SIGMA, ar1
from perfci.trend.change_points import segment
from perfci.trend.noise import prepare

SEED = 5
SIZES = {16: 4000, 30: 4000, 60: 4000, 120: 4000, 365: 4000, 1500: 1000}
RHOS = (0.0, 0.3, 0.6)
ALPHAS = (0.01, 0.001, 0.0001)
STEPS = (0.03, 0.05, 0.12, 0.30)
NIGHTS = ((4, 4), (7, 7), (10, 10), (20, 10), (30, 5), (30, 10), (60, 7))
STEPPED = 500
"""Series for each size of step, nights before and after it, and noise."""
RESULTS = Path(__file__).parent / "results" / "critical_values.json"


def main() -> None:
    """Simulate every cell, keep the counts and print the table."""
    rng = np.random.default_rng(SEED)
    cells = [_cell(rng, size, count, rho) for size, count in SIZES.items() for rho in RHOS]
    named = [_named(rng, nights, STEPPED, rho) for nights in NIGHTS for rho in (0.0, 0.6)]
    kept = {"seed": SEED, "cells": cells, "named": named}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    print(_table(cells), _named_table(named), sep="\n\n")


def _cell(rng: np.random.Generator, size: int, count: int, rho: float) -> dict:
    series = [prepare(LEVEL * np.exp(SIGMA * ar1(rng, rho, size))) for _ in range(count)]
    found = {}
    for alpha in ALPHAS:
        splits = [len(segment(one, alpha).splits) for one in series]
        found[str(alpha)] = {"series": sum(map(bool, splits)), "splits": sum(splits)}
        # what has none at this alpha has none at a smaller one
        series = [one for one, some in zip(series, splits, strict=True) if some]
    return {"points": size, "rho": rho, "series": count, "found": found}


def _named(rng: np.random.Generator, nights: tuple[int, int], count: int, rho: float) -> dict:
    """Count the series in which one step is named within two nights of its place."""
    before, after = nights
    found = {}
    for step in STEPS:
        found[str(step)] = 0
        for _ in range(count):
            levels = SIGMA * ar1(rng, rho, before + after)
            levels[before:] += np.log1p(step)
            splits = segment(prepare(LEVEL * np.exp(levels)), ALPHAS[1]).splits
            found[str(step)] += any(abs(one.place - before) <= 2 for one in splits)
    return {"before": before, "after": after, "rho": rho, "series": count, "found": found}


def _named_table(rows: Sequence[dict]) -> str:
    lines = [
        "| nights before | after | ρ | " + " | ".join(f"step of {s:.0%}" for s in STEPS) + " |",
        "|---" * (3 + len(STEPS)) + "|",
    ]
    for row in rows:
        shares = [f"{row['found'][str(step)] / row['series']:.0%}" for step in STEPS]
        lines.append(
            f"| {row['before']} | {row['after']} | {row['rho']} | " + " | ".join(shares) + " |"
        )
    return "\n".join(lines)


def _table(cells: Sequence[dict]) -> str:
    lines = [
        "| points | ρ | "
        + " | ".join(f"share of series ÷ α, α = {alpha}" for alpha in ALPHAS)
        + " | false changes per 1,000 points, α = 0.001 |",
        "|---" * (3 + len(ALPHAS)) + "|",
    ]
    for cell in cells:
        shares = [
            f"{cell['found'][str(alpha)]['series'] / cell['series'] / alpha:.1f}"
            for alpha in ALPHAS
        ]
        rate = 1000 * cell["found"]["0.001"]["splits"] / cell["series"] / cell["points"]
        lines.append(
            f"| {cell['points']} | {cell['rho']} | " + " | ".join(shares) + f" | {rate:.3f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
