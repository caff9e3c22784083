"""Head's values for ``benchmark-action/github-action-benchmark``, ``tool: customSmallerIsBetter``.

A file of that tool has one direction, so metrics whose higher values are better are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.report.clean import Clean
from perfci.report.measured import HeadValue, head_values

if TYPE_CHECKING:
    from perfci.model.report import Report

HELP = "Write head's values here, for github-action-benchmark (customSmallerIsBetter)."
_SCALES = {"s": ("µs", 1e6)}


def render(report: Report) -> Clean:
    """Return a list of entries: one for each row whose lower values are better."""
    from perfci.report.exporters.json import json_text

    rows = head_values(report, _SCALES)
    return json_text([_entry(value) for value in rows if value.row.direction == "lower"])


def _entry(value: HeadValue) -> dict[str, str | float]:
    entry: dict[str, str | float] = {
        "name": f"{value.case} {value.metric}",
        "unit": value.unit,
        "value": value.value,
    }
    if value.interval is not None:
        lower, upper = value.interval
        entry["range"] = f"± {(upper - lower) / 2:.3g}"
    return entry
