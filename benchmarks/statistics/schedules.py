"""How many rounds an ancestor gives: what reports of some schedules say, and what they take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.statistics.noise import MODELS
from benchmarks.statistics.paths import CASES, Compare, RoundsOfAncestor, policy_with
from benchmarks.statistics.scoring import Score, markdown, percent, rng_of
from benchmarks.statistics.thresholds import ALPHA, COMPARE, THRESHOLD
from perfci.model.report import Comparison
from perfci.verdict.caveats import ancestors_differ
from perfci.verdict.policy import threshold_of, worse_by
from perfci.verdict.stopping import rounds_of_ancestor

CHOSEN = (
    "spread 0.7 %",
    "spread 2 %",
    "ancestors as far apart as rounds",
    "ancestors 10 % apart",
    "bimodal, half slow",
    "one round in ten disturbed",
    "serial 0.6",
)
SHARES = (0.0, 1.0, 1.5, 2.0)
"""The true change, in thresholds."""


def _four_first(
    comparisons: Sequence[Comparison], undecided: Sequence[str], *, rounds: int, least: int
) -> int:
    """Return what was the rule before: the first five of four ancestors, then three of each."""
    if rounds < least:
        ancestors = max((row.ancestors for row in comparisons), default=0)
        return max(1, math.ceil((least - rounds) / max(1, 4 - ancestors)))
    rows = [row for row in comparisons if row.metric in undecided]
    few = any(row.ancestors < row.base.workers and _reaches(row) for row in rows if row.base)
    return 1 if few or any(map(ancestors_differ, rows)) else 3


def _then(
    each: int,
    comparisons: Sequence[Comparison],
    undecided: Sequence[str],
    *,
    rounds: int,
    least: int,
) -> int:
    """Return the rule's answer, with ``each`` where it gives several rounds."""
    count = rounds_of_ancestor(comparisons, undecided, rounds=rounds, least=least)
    return 1 if count == 1 else each


def _reaches(row: Comparison) -> bool:
    change, _, _ = worse_by(row)
    return change is not None and abs(change) >= threshold_of(row)


SCHEDULES: dict[str, RoundsOfAncestor] = {
    "5 of 4, then 3 each": _four_first,
    "1 each, then 3": partial(_then, 3),
    "1 each, then 2 (the rule)": rounds_of_ancestor,
    "1 each": partial(_then, 1),
}
TASKS = tuple(f"{name}: {model}" for name in SCHEDULES for model in CHOSEN)


def rows(task: str, reports: int) -> list[dict[str, Any]]:
    """Reports of twenty identical cases, four times as many as of twenty slower ones."""
    name, model = task.split(": ", 1)
    return [_row(name, model, share, (1 if share else 4) * reports) for share in SHARES]


def _row(name: str, model_name: str, share: float, reports: int) -> dict[str, Any]:
    rng = rng_of("schedules", model_name, str(share))
    (model,) = (model for model in MODELS if model.name == model_name)
    change = share * math.log1p(THRESHOLD)
    path, ancestors = Compare(rounds_of_ancestor=SCHEDULES[name]), 0
    score = Score(model_name, COMPARE, float(np.expm1(change)), THRESHOLD)
    for _ in range(reports):
        outcome = path(model, rng, [change] * CASES, policy_with(THRESHOLD))
        score.add(outcome, ALPHA)
        ancestors += sum(outcome.ancestors)
    return {
        "part": "schedules",
        "schedule": name,
        "share": share,
        "ancestors": ancestors,
        **score.plain(),
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "schedules"]
    if not mine:
        return ""
    cells = {(row["model"], row["schedule"], row["share"]): row for row in mine}
    lines = [
        (model, name, *_line([cells[model, name, share] for share in SHARES]))
        for model in CHOSEN
        for name in SCHEDULES
    ]
    head = (
        "model",
        "rounds of an ancestor",
        "0: false `fail`; interval holds; unchanged",
        "1: holds; falsely unchanged",
        "1½: regressed",
        "2: regressed",
        "rounds: 0; 1; 1½; 2",
        "ancestors: 0; 1; 1½; 2",
    )
    return markdown(head, lines)


def _line(of: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    alike, same, half_more, twice = of

    def share(row: dict[str, Any], name: str, total: str = "comparisons") -> str:
        return percent(row[name], row[total])

    return (
        "; ".join(
            (
                share(alike, "failed", "reports"),
                share(alike, "held", "intervals"),
                share(alike, "unchanged"),
            )
        ),
        f"{share(same, 'held', 'intervals')}; {share(same, 'unchanged')}",
        share(half_more, "regressed"),
        share(twice, "regressed"),
        "; ".join(f"{row['rounds'] / row['comparisons']:.1f}" for row in of),
        "; ".join(f"{row['ancestors'] / row['comparisons']:.1f}" for row in of),
    )
