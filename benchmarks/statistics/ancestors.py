"""Rounds that share ancestors: how few ancestors do, and what reports of them are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.statistics.noise import (
    LAYOUT_LUCK,
    MODELS,
    Array,
    Model,
    Rng,
    bimodal,
    gaussian,
    rounds_luck,
)
from benchmarks.statistics.paths import FAMILY, Path, Served, policy_with
from benchmarks.statistics.scoring import (
    Score,
    markdown,
    percent,
    percent_with_interval,
    rng_of,
)
from benchmarks.statistics.thresholds import ALPHA, THRESHOLD
from perfci.stats.nested import nested_t

DESIGNS = (
    (3, 3), (2, 2, 1), (2, 2, 2), (3, 3, 3), (5, 5, 5), (2, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3),
    (5, 5, 5, 5), (1,) * 5, (3,) * 5,
)  # fmt: skip
"""How many rounds each ancestor gives."""
RATIOS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
"""Variance between ancestors ÷ within."""
_LAYOUT = next(model for model in MODELS if model.layout)


def _constant(rng: Rng, cases: int, rounds: int) -> tuple[Array, Array]:
    """What no ancestor draws anew: the length of a checkout's path, the layout of a build."""
    luck, _ = rounds_luck(rng, cases, rounds)
    return luck, luck + rng.normal(0.0, LAYOUT_LUCK * np.sqrt(2.0), (cases, 1))


OWN = (
    replace(_LAYOUT, name="layout, 0.5 % a side", layout=0.005),
    Model(
        "bimodal ancestors",
        "half of the ancestors 10 % slower on a side",
        gaussian(0.007),
        rounds_luck,
        between=bimodal(0.5),
    ),
    Model("constant, 1 % a side", "the same for the whole session", gaussian(0.007), _constant),
)
"""Models beside those of every part: of luck that ancestors have."""
SERVED = "compare, ancestors"
_MORE = 5
"""Models whose false alarms are near 1 % are simulated so many times as often."""
TASKS = (
    *(f"design: {','.join(map(str, design))}" for design in DESIGNS),
    *(f"report: {model.name}" for model in (*MODELS, *OWN)),
)


def rows(task: str, runs: int) -> list[dict[str, object]]:
    """Return the coverage of a design, or what reports of identical cases say under a model."""
    kind, _, name = task.partition(": ")
    if kind == "design":
        design = tuple(map(int, name.split(",")))
        return [_coverage(design, ratio, runs) for ratio in RATIOS]
    (model,) = (model for model in (*MODELS, *OWN) if model.name == name)
    return [_reports(model, Served(), runs // 20 * (_MORE if "bimodal" in name else 1))]


def _coverage(design: tuple[int, ...], ratio: float, runs: int) -> dict[str, object]:
    rng = rng_of("ancestors", str(design), str(ratio))
    of = np.repeat(np.arange(1, len(design) + 1), design)
    luck = rng.normal(0.0, np.sqrt(ratio), (runs, len(design)))[:, of - 1]
    seen = (luck + rng.normal(0.0, 1.0, (runs, len(of)))).tolist()
    tests = [nested_t([0.0] * len(of), one, of.tolist()) for one in seen]
    held = sum(test.lo <= 0.0 <= test.hi for test in tests)
    wide = sum(test.hi - test.lo for test in tests) / runs
    name = "+".join(map(str, design))
    return {"part": "ancestors", "design": name, "ratio": ratio, "runs": runs, "held": held,
            "width": wide}  # fmt: skip


def _reports(model: Model, path: Path, reports: int) -> dict[str, object]:
    rng = rng_of("ancestors", model.name)
    score = Score(model.name, SERVED, float(np.expm1(model.offset)), THRESHOLD)
    policy = policy_with(THRESHOLD)
    ancestors = 0
    for _ in range(reports):
        outcome = path(model, rng, [0.0] * FAMILY, policy, ())
        ancestors += sum(outcome.ancestors)
        score.add(outcome, ALPHA)
    return {"part": "ancestors", **score.plain(), "ancestors": ancestors}


def design_table(results: Sequence[dict[str, object]]) -> str:
    mine = [row for row in results if row["part"] == "ancestors" and "design" in row]
    if not mine:
        return ""
    cells = {(row["design"], row["ratio"]): row for row in mine}
    designs = dict.fromkeys(row["design"] for row in mine)
    lines = [
        (name, *(percent(cells[name, r]["held"], cells[name, r]["runs"]) for r in RATIOS))
        for name in designs
    ]
    return markdown(("rounds of each ancestor", *(f"{ratio:g}" for ratio in RATIOS)), lines)


def report_table(results: Sequence[dict[str, object]]) -> str:
    mine = [row for row in results if row["part"] == "ancestors" and "model" in row]
    lines = [
        (
            row["model"],
            percent_with_interval(row["failed"], row["reports"]),
            percent(row["held"], row["intervals"]),
            percent(row["unchanged"], row["comparisons"]),
            f"{row['rounds'] / row['comparisons']:.1f}",
            f"{row['ancestors'] / row['comparisons']:.1f}",
        )
        for row in mine
    ]
    head = ("model", "false `fail`", "intervals hold", "`unchanged`", "rounds", "ancestors")
    return markdown(head, lines) if mine else ""
