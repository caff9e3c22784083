"""The default paths by noise model, and in short: the median over the usual models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import MODELS
from benchmarks.statistics.scoring import markdown, percent, percent_with_interval
from benchmarks.statistics.thresholds import CHECK, COMPARE

LAYOUT = "layout, 1 % a side"
USUAL = tuple(model.name for model in MODELS if not model.offset and model.name != LAYOUT)
COLUMNS = (
    ("`compare`", COMPARE, USUAL),
    ("`check`, 3 sessions", CHECK, USUAL),
    ("`compare`, *layout*", COMPARE, (LAYOUT,)),
)
IDENTICAL = None
LINES = (
    ("identical: reports that fail falsely", IDENTICAL, "failed", "reports"),
    ("identical: reports with anything significant", IDENTICAL, "alarmed", "reports"),
    ("identical: 95 % intervals that contain the truth", IDENTICAL, "held", "intervals"),
    ("identical: cases that are `unchanged`", IDENTICAL, "unchanged", "comparisons"),
    ("slower by the threshold: falsely `unchanged`", 1.0, "unchanged", "comparisons"),
    ("slower by twice the threshold: falsely `unchanged`", 2.0, "unchanged", "comparisons"),
    ("slower by twice the threshold: `regressed`", 2.0, "regressed", "comparisons"),
)
"""What is said, the true change in thresholds, and which count of which."""


def table(results: Sequence[dict[str, Any]]) -> str:
    mine = {_key(row): row for row in results if row["part"] in {"alarms", "boundary"}}
    lines = []
    for says, share, count, total in LINES:
        cells = [says]
        for _, path, models in COLUMNS:
            found = [mine.get((path, share, model)) for model in models]
            if None in found:
                return ""
            cells.append(_text([100.0 * row[count] / row[total] for row in found if row]))
        lines.append(cells)
    return markdown(("% of …", *(column for column, _, _ in COLUMNS)), lines)


BY_MODEL = (
    "model",
    "false `fail`",
    "significant",
    "intervals hold",
    "`unchanged`",
    "rounds",
    "5 % slower: hold; `regressed`; `unchanged`",
    "10 % slower: `regressed`",
    "2 % at 1 %: `regressed`",
    "pass: `compare`; `check`",
    "`check`: time",
)


def by_model(results: Sequence[dict[str, Any]]) -> str:
    """Return what `compare` says of identical cases and of slower ones, and how `check` passes."""
    found = {_key(row): row for row in results if row["part"] in {"alarms", "boundary"}}
    one = {
        row["model"]: row
        for row in results
        if row["part"] == "power" and (row["change"], row["threshold"]) == (0.02, 0.01)
    }
    lines = []
    for model in MODELS:
        alike = found.get((COMPARE, IDENTICAL, model.name))
        checked = found.get((CHECK, IDENTICAL, model.name))
        if alike is None or checked is None or model.name not in one:
            return ""
        at, twice = (found.get((COMPARE, share, model.name)) for share in (1.0, 2.0))
        counts = (("held", "intervals"), ("regressed", "comparisons"), ("unchanged", "comparisons"))
        lines.append(
            (
                model.name,
                percent_with_interval(alike["failed"], alike["reports"]),
                percent(alike["alarmed"], alike["reports"]),
                percent(alike["held"], alike["intervals"]),
                percent(alike["unchanged"], alike["comparisons"]),
                f"{alike['rounds'] / alike['comparisons']:.1f}",
                "; ".join(percent(at[count], at[total]) for count, total in counts) if at else "",
                percent(twice["regressed"], twice["comparisons"]) if twice else "",
                percent(one[model.name]["regressed"], one[model.name]["comparisons"], digits=0),
                f"{_passes(alike)}; {_passes(checked)}",
                f"{100 * _pace(checked) / _pace(alike):.0f}",
            )
        )
    return markdown(BY_MODEL, lines)


def _passes(row: dict[str, Any]) -> str:
    """Return the share of reports that pass."""
    return percent(row["reports"] - row["failed"] - row["inconclusive"], row["reports"], digits=0)


def _pace(row: dict[str, Any]) -> float:
    return float(row["rounds"]) / float(row["reports"])


def _key(row: dict[str, Any]) -> tuple[object, float | None, object]:
    """Return the row's path, its true change in thresholds, and its model."""
    if row["part"] == "alarms":
        return row["path"], IDENTICAL, row["model"]
    change, threshold = float(str(row["change"])), float(str(row["threshold"]))
    return row["path"], round(math.log1p(change) / math.log1p(threshold), 2), row["model"]


def _text(shares: Sequence[float]) -> str:
    if len(shares) == 1:
        return _share(shares[0])
    middle = float(np.median(shares))
    return f"{_share(middle)} ({_share(min(shares))}–{_share(max(shares))})"


def _share(share: float) -> str:
    return f"{share:.1f}" if share >= 1.0 else f"{share:.2g}"
