"""True changes at the threshold: of 5 %, and of a threshold in the model's own spreads.

At 5 % it is mostly the threshold that keeps identical cases from failing. At half a spread it
keeps nothing away, and what is left is alpha's doing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Model
from benchmarks.statistics.paths import CASES, PATHS, policy_with
from benchmarks.statistics.scoring import (
    Score,
    largest_error,
    markdown,
    percent,
    percent_with_interval,
    rng_of,
)

THRESHOLD = 0.05
ALPHA = 0.01
COMPARE = "compare"
CHECK = "check, 3 sessions"
SHARES = (0.5, 1.0, 2.0)
"""The true change, in thresholds."""
IN_SPREADS = (0.5, 1.0)
"""The threshold, in spreads of a round's log ratio."""
SCALED = (
    "spread 0.7 %",
    "bimodal, half slow",
    "fork servers differ as rounds do",
    "heavy tails, t2",
    "one round in ten disturbed",
    "layout, 1 % a side",
)
"""Most others are the first of these on another scale, or have no change of 0."""


def boundary(model: Model, path: str, reports: int) -> list[dict[str, Any]]:
    """Twenty cases slower by half the threshold of 5 %, by it, and by twice as much."""
    rng = rng_of("boundary", model.name, path)
    return [
        {"part": "boundary", **_score(model, path, share, THRESHOLD, reports, rng).plain()}
        for share in SHARES
    ]


def spreads(model: Model, factor: float, reports: int) -> list[dict[str, Any]]:
    """Twenty cases, the threshold so many spreads; those alike in eight times as many reports."""
    rng = rng_of("spreads", model.name, str(factor))
    spread = model.spread()
    threshold = float(np.expm1(factor * spread))
    return [
        {
            "part": "spreads",
            "spread": round(spread, 6),
            "factor": factor,
            "share": share,
            **_score(model, COMPARE, share, threshold, (1 if share else 8) * reports, rng).plain(),
        }
        for share in (0.0, *SHARES)
    ]


def _score(
    model: Model,
    path: str,
    share: float,
    threshold: float,
    reports: int,
    rng: np.random.Generator,
) -> Score:
    change = share * float(np.log1p(threshold))
    score = Score(model.name, path, float(np.expm1(change + model.offset)), threshold)
    policy = policy_with(threshold)
    for _ in range(reports):
        score.add(PATHS[path](model, rng, [change] * CASES, policy), ALPHA)
    return score


def spreads_table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "spreads"]
    if not mine:
        return ""
    groups: dict[object, dict[object, dict[str, Any]]] = {}
    for row in mine:
        groups.setdefault((row["model"], row["factor"]), {})[row["share"]] = row
    made = markdown(
        (
            "model",
            "threshold",
            "false `fail`",
            "slower by it: hold; `regressed`; `unchanged`",
        ),
        [_spreads_line(cells) for cells in groups.values()],
    )
    alike = _counts(row["reports"] for row in mine if row["share"] == 0.0)
    slower = _counts(row["comparisons"] for row in mine if row["share"] == 1.0)
    shares = [(row["regressed"], row["comparisons"]) for row in mine if row["share"]]
    return (
        f"{made}\n\n{alike} reports a cell of identical cases, "
        f"{slower} comparisons a cell of slower ones. {largest_error(shares)}"
    )


def _counts(counts: Iterable[object]) -> str:
    return " or ".join(str(count) for count in sorted({int(str(count)) for count in counts}))


def _spreads_line(cells: dict[object, dict[str, Any]]) -> tuple[object, ...]:
    alike, one = (cells[share] for share in (0.0, 1.0))

    def of(row: dict[str, Any], name: str) -> str:
        return percent(row[name], row["intervals" if name == "held" else "comparisons"])

    return (
        alike["model"],
        f"{alike['factor']:g} × {100 * alike['spread']:.2f} %",
        percent_with_interval(alike["failed"], alike["reports"]),
        f"{of(one, 'held')}; {of(one, 'regressed')}; {of(one, 'unchanged')}",
    )
