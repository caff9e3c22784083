"""The results as a table: a pandas frame for notebooks, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from perfci.model.report import Comparison, Estimate, Report
from perfci.render.clean import clean_line

if TYPE_CHECKING:
    import pandas as pd

Cell = str | int | float | bool | None

_PLAIN = (
    "case", "metric", "unit", "status", "gate", "method", "direction", "ratio", "ratio_lo",
    "ratio_hi", "difference", "difference_lo", "difference_hi", "threshold", "p", "p_adjusted",
    "welch_p", "cohens_d", "detectable", "confirmed",
)  # fmt: skip
_ESTIMATE = ("center", "lo", "hi", "workers", "samples")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""Full-width ones, too: spreadsheets in some languages compute from them."""


def to_frame(report: Report) -> pd.DataFrame:
    """Return one row for each comparison; ``base_…`` and ``head_…`` hold the estimates."""
    import pandas as pd

    return pd.DataFrame([_cells(row) for row in report.results], columns=list(_columns()))


def render_csv(report: Report) -> str:
    """Return the same table as CSV. A text that a spreadsheet would compute gets an apostrophe."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _columns(), lineterminator="\n")
    writer.writeheader()
    for row in report.results:
        writer.writerow({name: spreadsheet_cell(value) for name, value in _cells(row).items()})
    return out.getvalue()


def _columns() -> tuple[str, ...]:
    sides = tuple(f"{side}_{name}" for side in ("base", "head") for name in _ESTIMATE)
    return (*_PLAIN, *sides, "warnings")


def _cells(row: Comparison) -> dict[str, Cell]:
    return {
        **{name: getattr(row, name) for name in _PLAIN},
        **_estimate("base", row.base),
        **_estimate("head", row.head),
        "warnings": "; ".join(row.warnings),
    }


def _estimate(side: str, estimate: Estimate | None) -> dict[str, Cell]:
    return {f"{side}_{name}": getattr(estimate, name, None) for name in _ESTIMATE}


def spreadsheet_cell(value: Cell) -> Cell:
    """Return ``value`` so that no spreadsheet computes it: such a text gets an apostrophe."""
    if not isinstance(value, str):
        return value
    text = clean_line(value, 1000)
    return f"'{text}" if text.startswith(_FORMULA) else text
