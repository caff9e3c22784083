"""Reports of identical cases: each `fail` is false, and what else is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Model
from benchmarks.statistics.paths import CASES, PATHS, policy_with
from benchmarks.statistics.scoring import Score, markdown, percent, percent_with_interval, rng_of
from benchmarks.statistics.thresholds import ALPHA, CHECK, COMPARE, THRESHOLD

WEIGHTS = {COMPARE: 10, "check, 1 session": 2, CHECK: 2}
"""The paths that users get by default are simulated so many times as often."""
HEADINGS = (
    "model",
    "that fail, %",
    "with anything significant, %",
    "intervals that hold, %",
    "`unchanged`, %",
    "rounds",
)


def rows(model: Model, path: str, reports: int) -> list[dict[str, Any]]:
    """Reports of identical cases: each `fail` is false."""
    rng = rng_of("alarms", model.name, path)
    score = Score(model.name, path, float(np.expm1(model.offset)), THRESHOLD)
    policy = policy_with(THRESHOLD)
    for _ in range(reports * WEIGHTS.get(path, 1)):
        score.add(PATHS[path](model, rng, [0.0] * CASES, policy), ALPHA)
    return [{"part": "alarms", **score.plain()}]


def table(results: Sequence[dict[str, Any]]) -> str:
    lines = [
        (
            row["model"],
            percent_with_interval(row["failed"], row["reports"]),
            percent(row["alarmed"], row["reports"]),
            percent(row["held"], row["intervals"]),
            percent(row["unchanged"], row["comparisons"]),
            f"{row['rounds'] / row['comparisons']:.1f}",
        )
        for row in results
        if row["part"] == "alarms" and row["path"] == COMPARE
    ]
    return markdown(HEADINGS, lines) if lines else ""


CHECKS = ("check, 1 session", CHECK, "check, 5 sessions", "check, slow day")


def check_table(results: Sequence[dict[str, Any]]) -> str:
    """Return how `check` decides, compared with `compare`: passes, time and power."""
    alike = {(row["model"], row["path"]): row for row in results if row["part"] == "alarms"}
    slower = {
        row["model"]: row
        for row in results
        if row["part"] == "boundary" and row["path"] == CHECK and row["change"] > 1.5 * THRESHOLD
    }
    models = [model for model, path in alike if path == CHECK]
    if not models or any((model, COMPARE) not in alike for model in models):
        return ""
    lines = []
    for model in dict.fromkeys(models):
        of_compare = alike[model, COMPARE]
        pace = of_compare["rounds"] / of_compare["reports"]
        checks = [alike[model, path] for path in CHECKS]
        against = alike[model, CHECK]
        found = slower.get(model)
        lines.append(
            (
                model,
                _passed(of_compare),
                " / ".join(map(_passed, checks)),
                f"{100 * against['rounds'] / against['reports'] / pace:.0f}",
                percent(found["regressed"], found["comparisons"]) if found else "",
            )
        )
    heads = "`compare` passes, %|`check` passes, %|time, % of `compare`'s|all 10 % slower"
    return markdown(("model", *heads.split("|")), lines)


def _passed(row: dict[str, Any]) -> str:
    return f"{100 * (row['reports'] - row['failed'] - row['inconclusive']) / row['reports']:.0f}"
