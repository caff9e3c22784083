"""Processes of two speeds: what comparing within each speed gains, and what it lets pass."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.statistics.noise import MODELS, Array, Model, Rng, bimodal, rounds_luck
from benchmarks.statistics.paths import CASES, Compare, policy_with
from benchmarks.statistics.scoring import largest_error, markdown, percent, rng_of
from perfci.stats.speeds import two_speeds
from perfci.verdict import speeds
from perfci.verdict.decision import decide

THRESHOLD = 0.05
CHANGES = (0.0, 0.05, 0.075, 0.10)
SIZES = (5, 6, 8, 10, 12, 15, 20)
RULES = ("one mean", "within speeds")
Draw = Callable[[Rng, int], Array]


def _of_shares(base: float, head: float, gap: float) -> Model:
    """Return processes of which head has another share of slow ones; all else is the same."""
    step = float(np.log1p(gap))
    return Model(
        f"{gap:.0%} apart, slow: {base:.0%} of base, {head:.0%} of head".replace("%", " %"),
        "the share of slow processes differs",
        bimodal(base, step),
        rounds_luck,
        head_own=bimodal(head, step),
        offset=(head - base) * step,
    )


_ALIKE = (
    *(model for model in MODELS if model.name.startswith("bimodal")),
    Model("bands 20 % apart", "", bimodal(0.5, float(np.log(1.2))), rounds_luck),
    Model("bands 70 % apart", "", bimodal(0.5, float(np.log(1.7))), rounds_luck),
)
_SHARES = (_of_shares(0.2, 0.7, 0.1), _of_shares(0.1, 0.4, 0.2), _of_shares(0.3, 0.5, 0.6))
_DRAWS: dict[str, Draw] = {
    "normal": lambda rng, n: 0.02 * rng.normal(size=n),
    "t3": lambda rng, n: 0.02 * rng.standard_t(3.0, n),
    "t2": lambda rng, n: 0.02 * rng.standard_t(2.0, n),
    "skewed (differences of lognormal)": lambda rng, n: (
        0.02 * np.diff(rng.lognormal(0.0, 1.0, (2, n)), axis=0)[0]
    ),
    "steps of 1 %": lambda rng, n: np.round(0.01 * rng.normal(size=n), 2),
}
_SAMPLES, _SESSIONS = "speeds seen", "speeds: "
TASKS = (_SAMPLES, *(f"{_SESSIONS}{model.name}" for model in (*_ALIKE, *_SHARES)))


@contextmanager
def _rule(name: str) -> Iterator[None]:
    """Decide by ``name``: the rule, or as if no two speeds were ever seen."""
    if name == RULES[1]:
        yield
        return
    with mock.patch.object(speeds, "two_speeds", return_value=None):
        yield


def rows(task: str, runs: int) -> list[dict[str, Any]]:
    """``runs`` samples of a size, or a twentieth as many reports of ``CASES`` cases."""
    if task == _SAMPLES:
        return [_seen(name, size, 20 * runs) for name in _DRAWS for size in SIZES]
    model = next(m for m in (*_ALIKE, *_SHARES) if f"{_SESSIONS}{m.name}" == task)
    changes = (0.0,) if model.offset else CHANGES
    return [
        _session(model, change, rule, max(1, runs // 20)) for change in changes for rule in RULES
    ]


def _seen(name: str, size: int, runs: int) -> dict[str, Any]:
    rng = np.random.default_rng([9, size, zlib.crc32(name.encode())])
    seen = sum(two_speeds(_DRAWS[name](rng, size).tolist()) is not None for _ in range(runs))
    return {"part": "speeds", "values": name, "n": size, "runs": runs, "seen": seen}


def _session(model: Model, change: float, rule: str, reports: int) -> dict[str, Any]:
    rng, policy = rng_of("speeds", model.name, f"{change}"), policy_with(THRESHOLD)
    cell = {"part": "speeds", "model": model.name, "change": change, "rule": rule}
    counts = dict.fromkeys(
        ("comparisons", "passing", "regressed", "unchanged", "held", "rounds"), 0
    )
    with _rule(rule):
        for _ in range(reports):
            outcome = Compare()(model, rng, [math.log1p(change)] * CASES, policy)
            for row in outcome.rows:
                counts["comparisons"] += 1
                counts["passing"] += decide((row,), (), policy).status == "pass"
                counts["regressed"] += row.status == "regressed"
                counts["unchanged"] += row.status == "unchanged"
                lo, hi = row.ratio_lo or 0.0, row.ratio_hi or math.inf
                counts["held"] += lo <= 1.0 + change <= hi
            counts["rounds"] += sum(outcome.rounds)
    return {**cell, **counts}


def seen_table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "speeds" and "seen" in row]
    if not mine:
        return ""
    cells = {(row["values"], row["n"]): percent(row["seen"], row["runs"], 2) for row in mine}
    names = dict.fromkeys(row["values"] for row in mine)
    made = markdown(
        ("% of samples called two speeds", *(f"n = {n}" for n in SIZES)),
        [(name, *(cells[name, n] for n in SIZES)) for name in names],
    )
    return f"{made}\n\n{largest_error(((row['seen'], row['runs']) for row in mine), 2)}"


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = [row for row in results if row["part"] == "speeds" and "model" in row]
    if not mine:
        return ""
    lines = []
    for key in dict.fromkeys((row["model"], row["change"]) for row in mine):
        both = {r["rule"]: r for r in mine if (r["model"], r["change"]) == key}
        texts = [_cell(both[rule]) for rule in RULES]
        lines.append((key[0], f"{float(str(key[1])):+.1%}" if key[1] else "0", *texts))
    made = markdown(("processes", "true change", *RULES), lines)
    return f"{made}\n\n{mine[0]['comparisons']} cases a cell."


def _cell(row: dict[str, Any]) -> str:
    total = row["comparisons"]
    shares = [percent(row[name], total, 0) for name in ("passing", "regressed", "held")]
    return f"{'; '.join(shares)}; {float(str(row['rounds'])) / float(str(total)):.1f}"
