"""The default paths in one table: the median over the usual noise models, and their extremes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.noise import MODELS
from benchmarks.statistics.scoring import markdown
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
