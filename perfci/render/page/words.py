"""What the page says of a row beside what every format says: test, threshold, what to blame."""

from __future__ import annotations

from collections.abc import Iterator

from perfci.model.report import Comparison, Estimate
from perfci.render.rows import detectable_text, measured_text
from perfci.render.statistics import effect_text, freedom_text, p_text
from perfci.stats.quantile import median
from perfci.units import counted, format_share, format_value
from perfci.verdict.cause import Cause

BLAME: dict[Cause, str] = {
    "code": "what differs between the sides",
    "noise": "variance between processes",
    "machine": "something else ran, or the machine throttled",
    "method": "how it was measured: too little, too coarse, or not alike",
}
"""What each class says; the empty one has nothing to say."""
_TESTS = {
    "paired_t": "paired t, of each round's two processes",
    "welch_t": "Welch's t, of unpaired processes",
    "exact": "none: all processes of a side agree",
    "same_code": "none: both sides are the same code",
}
_GATES = {"fail": "fails the report", "warn": "warns", "info": "informs"}


_STEADY, _WINDOW = 1.1, 5
"""Steady is the first call that, as the median of so many from it on, is within 10 % of warm."""


def _steady_text(side: Estimate) -> str:
    """Return from which call on a process is warm, or that none of those kept is."""
    calls, warm = side.first_calls, _STEADY * (side.center or 0.0)
    windows = (calls[at : at + _WINDOW] for at in range(max(1, len(calls) - _WINDOW + 1)))
    first = next(
        (at for at, of in enumerate(windows, 1) if max(of[0], median(of)) <= warm),
        None,
    )
    return f"none of the first {len(calls)}" if first is None else str(first)


def facts(row: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what stands behind a row's numbers, as terms with their values."""
    if row.method in _TESTS:
        yield "Test", _TESTS[row.method]
    if measured := measured_text(row):
        yield "Measured", measured
    if row.df is not None:
        yield "Degrees of freedom", freedom_text(row)
    steady = [_steady_text(side) for side in (row.base, row.head) if side and side.first_calls]
    if steady:
        yield "Steady from call", " → ".join(steady)
    if row.p is not None:
        adjusted = "" if row.p_adjusted is None else f", {p_text(row.p_adjusted)} adjusted"
        yield "p", f"{p_text(row.p)}{adjusted}"
    if row.cohens_d is not None:
        yield "Cohen's d", effect_text(row)
    if row.detectable is not None:
        yield "Could detect", detectable_text(row)
    limit = format_value(row.threshold, row.unit)
    yield "Threshold", limit if row.difference is not None else format_share(row.threshold)
    yield "Gate", _GATES[row.gate]
    if row.rounds_set_aside:
        yield "Excluded rounds", f"{counted(row.rounds_set_aside, 'outlier')}, in no figure"
    if row.disturbance:
        yield "Disturbed by", row.disturbance
