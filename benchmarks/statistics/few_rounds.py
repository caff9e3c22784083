"""How few rounds carry an interval: coverage, and what passes for unchanged, by their number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import MODELS
from benchmarks.statistics.scoring import markdown, rng_of
from perfci.stats.t_tests import Resolution, paired_t
from perfci.verdict.policy import is_within

ROUNDS = (2, 3, 4, 5, 6)
THRESHOLD = 0.05
CHANGE = 0.10
LEFT_OUT = ("layout, 1 % a side",)
"""Where no number of rounds helps, or there is no interval."""
TASKS = tuple(
    f"few: {model.name}"
    for model in MODELS
    if model.name not in LEFT_OUT and not model.offset and model.between is None
)
_RESOLUTION = Resolution(1e-12)


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    """Rounds of identical sides, and of a head slower by twice the threshold."""
    name = task.removeprefix("few: ")
    (model,) = (model for model in MODELS if model.name == name)
    return [_row(name, model.together(rng_of("few", name), runs, n).log_ratios) for n in ROUNDS]


def _row(name: str, log_ratios: np.ndarray) -> dict[str, Any]:
    runs, rounds = log_ratios.shape
    intervals = held = unchanged = 0
    change, margin = math.log1p(CHANGE), math.log1p(THRESHOLD)
    for differences in log_ratios.tolist():
        test = paired_t([0.0] * rounds, differences, resolution=_RESOLUTION)
        if test.p is None or test.lo is None or test.hi is None:
            continue
        intervals += 1
        held += test.lo <= 0.0 <= test.hi
        unchanged += is_within(test.lo + change, test.hi + change, margin)
    return {
        "part": "few",
        "model": name,
        "rounds": rounds,
        "runs": runs,
        "intervals": intervals,
        "held": held,
        "unchanged": unchanged,
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    """Return for each number of rounds the lowest and highest share over the models."""
    mine = [row for row in results if row["part"] == "few"]
    if not mine:
        return ""
    lines = []
    for rounds in dict.fromkeys(row["rounds"] for row in mine):
        these = [row for row in mine if row["rounds"] == rounds]
        held = [(100.0 * row["held"] / row["intervals"], row["model"]) for row in these]
        false = [(100.0 * row["unchanged"] / row["runs"], row["model"]) for row in these]
        lines.append(
            (
                rounds,
                f"{min(held)[0]:.1f} ({min(held)[1]})",
                f"{max(held)[0]:.1f} ({max(held)[1]})",
                f"{max(false)[0]:.2f} ({max(false)[1]})",
            )
        )
    head = ("rounds", "intervals hold, %: lowest", "highest", "falsely `unchanged`, %: highest")
    return markdown(head, lines)
