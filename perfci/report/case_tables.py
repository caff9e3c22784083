"""A benchmark's modes, and its shapes, as tables in words that every format shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfci.model.report import ModeMatrix, ModeRow, Report, ShapeRow, ShapeTable
from perfci.model.words import words
from perfci.units import format_change, format_interval, format_share, format_value
from perfci.verdict.modes import mode_matrices, shape_tables

_GUARD = "guard that failed"
_MODE_HEADS = ("mode", "latency", "speed-up", "peak", "compile", "cached", "pays at")
_SHAPE_HEADS = ("shape", "latency", "change", "compiles", _GUARD)


@dataclass(frozen=True, slots=True)
class CaseTable:
    """A table of one case. Columns without anything in them are left out.

    ``lines`` are the heads, then the rows. ``changed``: a row moved, or the advice is another than
    base's.
    """

    case: str
    what: str
    lines: Sequence[tuple[str, ...]]
    advice: str
    changed: bool

    @property
    def title(self) -> str:
        """The case, and what its rows are."""
        return f"{self.case} by {self.what}"

    @property
    def has_texts(self) -> bool:
        """True where the last column is of words. All others but the first are of numbers."""
        return self.lines[0][-1] == _GUARD


def tables_by_mode(report: Report, *, every: bool = False) -> tuple[CaseTable, ...]:
    """Return the modes to show: of a comparison those that changed, unless ``every``."""
    return _shown(map(_mode_table, mode_matrices(report.results)), report, every=every)


def tables_by_shape(report: Report, *, every: bool = False) -> tuple[CaseTable, ...]:
    """Return the shapes to show: of a comparison those that changed, unless ``every``."""
    return _shown(map(_shape_table, shape_tables(report.results)), report, every=every)


def _shown(tables: Iterable[CaseTable], report: Report, *, every: bool) -> tuple[CaseTable, ...]:
    return tuple(table for table in tables if every or report.is_one_sided or table.changed)


def _without_empty(
    heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    lines = list(rows)
    kept = [column for column in range(len(heads)) if any(line[column] for line in lines)]
    return [tuple(line[column] for column in kept) for line in (heads, *lines)]


def _mode_table(matrix: ModeMatrix) -> CaseTable:
    lines = _without_empty(_MODE_HEADS, map(_mode_cells, matrix.rows))
    return CaseTable(matrix.case, "mode", lines, _mode_advice(matrix), matrix.changed)


def _mode_cells(row: ModeRow) -> tuple[str, ...]:
    return (
        row.mode,
        format_value(row.latency, "s"),
        _gain(row),
        _known(row.peak_memory, "bytes"),
        _known(row.compile_time, "s"),
        _known(row.compile_time_cached, "s"),
        _calls(row),
    )


def _mode_advice(matrix: ModeMatrix) -> str:
    """Return the one recommendation, and base's where it was another."""
    same = (matrix.base_advice, matrix.base_best) == (matrix.advice, matrix.best)
    match matrix.base_advice:
        case "use" if not same:
            return f"{_head_advice(matrix)}; on base it was {matrix.base_best}"
        case "none" if not same:
            return f"{_head_advice(matrix)}; on base no mode helped"
        case _:
            return _head_advice(matrix)


def _head_advice(matrix: ModeMatrix) -> str:
    enough = format_share(matrix.threshold)
    if matrix.advice == "none":
        return f"no mode helps: none is {enough} faster than eager"
    if matrix.advice == "undecided":
        return f"not decided: more rounds show whether a mode is {enough} faster than eager"
    row = next(row for row in matrix.rows if row.mode == matrix.best)
    pays = f", and pays for its compile after {_calls(row)} calls" if _calls(row) else ""
    return f"use {row.mode}: {_times(row.speedup or 1.0)} as fast as eager{pays}"


def _gain(row: ModeRow) -> str:
    if row.speedup is None:
        return ""
    if row.speedup_lo is None or row.speedup_hi is None:
        return _times(row.speedup)
    return f"{_times(row.speedup)} ({_digits(row.speedup_lo)}…{_digits(row.speedup_hi)})"


def _times(ratio: float) -> str:
    return f"{_digits(ratio)}×"


def _digits(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10.0 else format_value(ratio, "ratio")


def _calls(row: ModeRow) -> str:
    """Return the calls until compiling pays with an empty cache, else with a warm one."""
    calls = row.pays_after if row.pays_after is not None else row.pays_after_cached
    return "" if calls is None else f"{calls:,}"


def _shape_table(shapes: ShapeTable) -> CaseTable:
    lines = _without_empty(_SHAPE_HEADS, map(_shape_cells, shapes.rows))
    return CaseTable(shapes.case, "shape", lines, _shape_advice(shapes), shapes.changed)


def _shape_cells(row: ShapeRow) -> tuple[str, ...]:
    return (
        row.shape.replace("_", ", "),
        _known(row.latency, "s"),
        _change(row),
        _compiles(row),
        row.guard,
    )


def _shape_advice(shapes: ShapeTable) -> str:
    """Return the hit rate, base's where it was another, and what may spare compiles."""
    parts = []
    if shapes.hit_rate is not None:
        rate = (
            f"code compiled for another shape served {format_share(shapes.hit_rate)} of the shapes"
        )
        if shapes.base_hit_rate is not None and shapes.base_hit_rate != shapes.hit_rate:
            rate = f"{rate}; on base {format_share(shapes.base_hit_rate)}"
        parts.append(rate)
    if shapes.suggestion:
        parts.append(words(shapes.suggestion))
    return "; ".join(parts)


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


def _known(value: float | None, unit: str) -> str:
    return "" if value is None else format_value(value, unit)
