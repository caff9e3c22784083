"""A report's comparisons as the rows of a table. pandas is imported where a frame is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from perfci.model.report import Comparison, Estimate, Report

Cell = str | int | float | bool | None

_TEXTS = ("case", "metric", "unit", "status", "gate", "method", "direction")
_NUMBERS = (
    "ratio", "ratio_lo", "ratio_hi", "difference", "difference_lo", "difference_hi", "threshold",
    "p", "p_adjusted", "welch_p", "cohens_d", "detectable",
)  # fmt: skip
_ESTIMATE = ("center", "lo", "hi", "workers", "samples")
_SIDES = tuple(f"{side}_{name}" for side in ("base", "head") for name in _ESTIMATE)
COLUMNS = (*_TEXTS, *_NUMBERS, "confirmed", *_SIDES, "warnings")


def cells(row: Comparison) -> dict[str, Cell]:
    """Return a comparison's cells by column; ``base_…`` and ``head_…`` hold the estimates."""
    return {
        **{name: getattr(row, name) for name in (*_TEXTS, *_NUMBERS, "confirmed")},
        **_estimate("base", row.base),
        **_estimate("head", row.head),
        "warnings": "; ".join(row.warnings),
    }


def _estimate(side: str, estimate: Estimate | None) -> dict[str, Cell]:
    return {f"{side}_{name}": getattr(estimate, name, None) for name in _ESTIMATE}


def report_frame(report: Report) -> pd.DataFrame:
    """Return a row for each comparison: numbers as float64, NaN where there is none."""
    import pandas as pd

    frame = pd.DataFrame([cells(row) for row in report.results], columns=list(COLUMNS))
    kinds = {**dict.fromkeys((*_NUMBERS, *_SIDES), "float64"), "confirmed": "boolean"}
    return frame.astype(kinds)
