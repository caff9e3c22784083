"""Head's values in a report, for the formats of dashboards, which have no comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfci.report.clean import clean_line

if TYPE_CHECKING:
    from perfci.model.report import Comparison, Report

Scales = Mapping[str, tuple[str, float]]
"""Maps perfci's unit to the dashboard's unit and the factor that converts a value.

All values of a unit have the same factor: dashboards compare numbers without reading their unit.
"""


@dataclass(frozen=True, slots=True)
class HeadValue:
    """Head's value of one row, with its interval and its workers' values, all in ``unit``."""

    row: Comparison
    case: str
    metric: str
    unit: str
    value: float
    interval: tuple[float, float] | None
    values: tuple[float, ...]


def head_values(report: Report, scales: Scales) -> Iterator[HeadValue]:
    """Yield head's value of each row. Rows without a finite value are left out."""
    for row in report.results:
        head = row.head
        if head is None or head.center is None or not math.isfinite(head.center):
            continue
        unit, scale = scales.get(row.unit, (row.unit, 1.0))
        bounds = [bound * scale for bound in (head.lo, head.hi) if bound is not None]
        sound = len(bounds) == 2 and all(map(math.isfinite, bounds))
        yield HeadValue(
            row,
            clean_line(row.case),
            clean_line(row.metric, 100),
            clean_line(unit, 50),
            head.center * scale,
            (bounds[0], bounds[1]) if sound else None,
            tuple(value * scale for value in head.values if math.isfinite(value)),
        )


def axis_labels(case: str) -> dict[str, str]:
    """Return the axes in a case's id, each with its label."""
    inner = case.partition("[")[2].removesuffix("]")
    pairs = (part.partition("=") for part in inner.split(","))
    return {axis: label for axis, equals, label in pairs if equals}
