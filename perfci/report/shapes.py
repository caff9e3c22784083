"""The shapes of a benchmark in words that every format shares: cells, and what spares compiles."""

from __future__ import annotations

from collections.abc import Sequence

from perfci.model.report import Report, ShapeRow, ShapeTable
from perfci.model.words import words
from perfci.units import format_change, format_interval, format_share, format_value
from perfci.verdict.modes import shape_tables

HEADS = ("shape", "latency", "change", "compiles", "guard that failed")
TEXTS = frozenset({"guard that failed"})
"""Columns of words; all others but the first are of numbers."""


def shown(report: Report, *, every: bool = False) -> tuple[ShapeTable, ...]:
    """Return the tables to show: of a comparison those that changed, unless ``every``."""
    found = shape_tables(report.results)
    if every or report.is_one_sided:
        return found
    return tuple(table for table in found if table.changed)


def title(of: ShapeTable) -> str:
    """Return which benchmark's shapes these are."""
    return f"{of.case} by shape"


def table(of: ShapeTable) -> Sequence[tuple[str, ...]]:
    """Return the heads of the columns that have anything in them, and the rows."""
    lines = [_cells(row) for row in of.rows]
    kept = [at for at in range(len(HEADS)) if any(line[at] for line in lines)]
    return [tuple(line[at] for at in kept) for line in (HEADS, *lines)]


def advice_text(of: ShapeTable) -> str:
    """Return the hit rate, base's where it was another, and what may spare compiles."""
    said = []
    if of.hit_rate is not None:
        told = f"code compiled for another shape served {format_share(of.hit_rate)} of the shapes"
        if of.base_hit_rate is not None and of.base_hit_rate != of.hit_rate:
            told = f"{told}; on base {format_share(of.base_hit_rate)}"
        said.append(told)
    if of.suggestion:
        said.append(words(of.suggestion))
    return "; ".join(said)


def _cells(row: ShapeRow) -> tuple[str, ...]:
    return (
        row.shape.replace("_", ", "),
        "" if row.latency is None else format_value(row.latency, "s"),
        _change(row),
        _compiles(row),
        row.guard,
    )


def _change(row: ShapeRow) -> str:
    if row.ratio is None:
        return ""
    change = format_change(row.ratio)
    if row.ratio_lo is None or row.ratio_hi is None or row.ratio_lo == row.ratio_hi:
        return change
    return f"{change} ({format_interval(row.ratio_lo, row.ratio_hi, like=row.ratio)})"


def _compiles(row: ShapeRow) -> str:
    if row.compiles is None:
        return ""
    now = format_value(row.compiles, "count")
    if row.base_compiles is None or row.base_compiles == row.compiles:
        return now
    return f"{format_value(row.base_compiles, 'count')} → {now}"
