"""Rounds that end where a regression is excluded, beside rounds that decide in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.statistics.noise import MODELS
from benchmarks.statistics.paths import CASES, Compare, policy_with
from benchmarks.statistics.scoring import Score, markdown, percent, rng_of
from benchmarks.statistics.thresholds import ALPHA, THRESHOLD

SHARES = (0.0, 0.5, 1.0, 2.0, -1.0, -2.0)
"""The true change, in thresholds; below 0 head is better."""
RULES = ("two-sided", "one-sided")
_MODELS = (
    "spread 0.7 %",
    "spread 2 %",
    "bimodal, half slow",
    "bimodal, fifth slow",
    "bimodal 60 %, half slow",
    "ancestors as far apart as rounds",
    "serial 0.3",
    "heavy tails, t2",
    "one round in ten disturbed",
)
_BEFORE = "rounds: "
TASKS = tuple(f"{_BEFORE}{name}" for name in _MODELS)


def rows(task: str, reports: int) -> list[dict[str, Any]]:
    """``reports`` of twenty cases for each change and rule, of the same noise."""
    model = next(model for model in MODELS if f"{_BEFORE}{model.name}" == task)
    cells = []
    for share in SHARES:
        change = share * float(np.log1p(THRESHOLD))
        for rule in RULES:
            score = Score(model.name, rule, float(np.expm1(change)), THRESHOLD)
            policy = replace(policy_with(THRESHOLD), two_sided=rule == RULES[0])
            rng = rng_of("one-sided", model.name, str(share))
            for _ in range(reports):
                score.add(Compare()(model, rng, [change] * CASES, policy), ALPHA)
            cells.append({"part": "one_sided", "share": share, **score.plain()})
    return cells


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "one_sided"]
    if not mine:
        return ""
    lines = []
    for model in dict.fromkeys(row["model"] for row in mine):
        for rule in RULES:
            cells = {r["share"]: r for r in mine if (r["model"], r["path"]) == (model, rule)}
            lines.append((model, rule, *(_cell(cells[share]) for share in SHARES)))
    heads = ("identical", *(f"{100 * THRESHOLD * share:+g} %" for share in SHARES[1:]))
    made = markdown(("model", "rounds", *heads), lines)
    return f"{made}\n\n{mine[0]['comparisons']} cases a cell."


def _cell(row: dict[str, Any]) -> str:
    total = row["comparisons"]
    names = ("passing", "regressed", "improved")
    shares = "; ".join(percent(row[name], total, 0) for name in names)
    return f"{shares}; {float(str(row['rounds'])) / float(str(total)):.1f}"
