"""How often the true place of a step is in the range that is named with 95 % confidence.

    PYTHONPATH=. python benchmarks/trend/places.py

One step in the middle third of 120 runs with 1 % of AR(1) noise. Of the series in which exactly
one step is named: whether the named run is the true one, whether the true one is in the range,
and how many runs that holds. Prints a Markdown table, and keeps it in ``results/places.json``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.trend.synthetic import LEVEL, RHOS, SIGMA, ar1
from perfci.trend import TrendSettings
from perfci.trend.change_points import examine

SEED = 11
NIGHTS = 120
STEPS = (0.01, 0.02, 0.03, 0.05)
SERIES = 1000
RESULTS = Path(__file__).parent / "results" / "places.json"


def main() -> None:
    """Simulate every cell, keep the counts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--series", type=int, default=SERIES, help="a cell")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    cells = [_cell(rng, rho, step, options.series) for rho in RHOS for step in STEPS]
    if options.series == SERIES:
        RESULTS.write_text(json.dumps({"seed": options.seed, "cells": cells}, indent=1) + "\n")
    print(_table(cells))


def _cell(rng: np.random.Generator, rho: float, step: float, count: int) -> dict:
    widths, exact, inside = [], 0, 0
    for _ in range(count):
        at = int(rng.integers(NIGHTS // 3, 2 * NIGHTS // 3))
        levels = SIGMA * ar1(rng, rho, NIGHTS)
        levels[at:] += np.log1p(step)
        found = examine(LEVEL * np.exp(levels), TrendSettings())
        if [one.kind for one in found] != ["step"]:
            continue
        before, after = found[0].within
        exact += found[0].after == at
        inside += before < at <= after
        widths.append(after - before)
    named = len(widths)
    return {
        "rho": rho,
        "step": step,
        "series": count,
        "named": named,
        "exact": exact,
        "inside": inside,
        "median_nights": float(np.median(widths)) if named else None,
    }


def _table(cells: Sequence[dict]) -> str:
    columns = (
        "ρ",
        "step",
        "named",
        "the named run is the true one",
        "the true one is in the named range",
        "runs in that range, median",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for cell in cells:
        named = cell["named"]
        shares = [f"{cell[key] / named:.0%}" if named else "–" for key in ("exact", "inside")]
        width = f"{cell['median_nights']:.0f}" if named else "–"
        row = (
            str(cell["rho"]),
            f"{cell['step']:.0%}",
            f"{named / cell['series']:.0%}",
            *shares,
            width,
        )
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
