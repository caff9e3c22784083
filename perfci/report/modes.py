"""The mode matrix in words that every format shares: cells, and what to use."""

from __future__ import annotations

from collections.abc import Sequence

from perfci.model.report import ModeMatrix, ModeRow, Report
from perfci.units import format_share, format_value
from perfci.verdict.modes import mode_matrices

HEADS = ("mode", "latency", "speed-up", "peak", "compile", "cached", "pays at")
TEXTS: frozenset[str] = frozenset()
"""Columns of words beside the first."""


def shown(report: Report, *, every: bool = False) -> tuple[ModeMatrix, ...]:
    """Return the matrices to show: of a comparison those that changed, unless ``every``."""
    found = mode_matrices(report.results)
    if every or report.is_one_sided:
        return found
    return tuple(matrix for matrix in found if matrix.changed)


def title(matrix: ModeMatrix) -> str:
    """Return which benchmark's modes these are."""
    return f"{matrix.case} by mode"


def cells(row: ModeRow) -> tuple[str, ...]:
    """Return a mode's cells, in the order of ``HEADS``."""
    return (
        row.mode,
        format_value(row.latency, "s"),
        _gain(row),
        _known(row.peak_memory, "bytes"),
        _known(row.compile_time, "s"),
        _known(row.compile_time_cached, "s"),
        _calls(row),
    )


def table(matrix: ModeMatrix) -> Sequence[tuple[str, ...]]:
    """Return the heads of the columns that have anything in them, and the rows."""
    lines = [cells(row) for row in matrix.rows]
    kept = [at for at in range(len(HEADS)) if any(line[at] for line in lines)]
    return [tuple(line[at] for at in kept) for line in (HEADS, *lines)]


def advice_text(matrix: ModeMatrix) -> str:
    """Return the one recommendation, and base's where it was another."""
    same = (matrix.base_advice, matrix.base_best) == (matrix.advice, matrix.best)
    match matrix.base_advice:
        case "use" if not same:
            return f"{_advice(matrix)}; on base it was {matrix.base_best}"
        case "none" if not same:
            return f"{_advice(matrix)}; on base no mode helped"
        case _:
            return _advice(matrix)


def _advice(matrix: ModeMatrix) -> str:
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


def _known(value: float | None, unit: str) -> str:
    return "" if value is None else format_value(value, unit)


def _calls(row: ModeRow) -> str:
    """Return the calls until compiling pays with an empty cache, else with a warm one."""
    calls = row.pays_after if row.pays_after is not None else row.pays_after_cached
    return "" if calls is None else f"{calls:,}"
