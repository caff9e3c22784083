"""A comparison as the four cells of a comment's table: case, what, change, limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfci.metrics import METRICS
from perfci.model.report import Comparison, Explanation, Report
from perfci.report.clean import clean_line
from perfci.report.rows import (
    CaseWhy,
    accepted_text,
    change_text,
    has_numbers,
    interval_text,
    side_text,
)
from perfci.units import format_share, format_value
from perfci.verdict.why import explains

LONGEST_REASON = 140
"""In a cell. A longer one stands whole below the table."""


@dataclass(frozen=True, slots=True)
class Because:
    """Why a row moved, short enough for its cell."""

    text: str
    file: str = ""
    line: int = 0


def metric_words(metric: str) -> str:
    """Return what a reader calls a metric of perfci's own; another's name is as it is written.

    >>> metric_words("latency_p50"), metric_words("graph_breaks")
    ('latency', 'graph breaks')
    """
    if metric not in METRICS:
        return metric
    return metric.removesuffix("_p50").replace("_", " ")


def values_text(row: Comparison) -> str:
    """Return both sides' values, ``222 → 286 µs``, the unit once where it is the same."""
    base, head = side_text(row.base, row.unit), side_text(row.head, row.unit)
    number, _, unit = base.partition(" ")
    if unit and head.endswith(f" {unit}"):
        base = number
    return f"{base} → {head}" if row.base or row.head else ""


def limit_text(row: Comparison) -> str:
    """Return how far the metric may change."""
    if not has_numbers(row):
        return ""
    if row.difference is not None:
        return format_value(row.threshold, row.unit)
    return format_share(row.threshold)


def moved_text(row: Comparison) -> str:
    """Return the change; of a row without one, that it failed."""
    if row.status == "failed" and not has_numbers(row):
        return "failed"
    return change_text(row)


def span_text(row: Comparison) -> str:
    """Return the change's 95 % interval beside it, ``(27.4…30.3)``: its unit and sign said once.

    Where the interval has both signs, each stands.
    """
    text = interval_text(row)
    if not text or row.difference is not None:
        return f"({text})" if text else ""
    lo, _, hi = text.removesuffix(" %").partition(" … ")
    if lo[0] == hi[0] and lo[0] in "+×":
        lo, hi = lo[1:], hi[1:]
    return f"({lo}…{hi})"


def remarks(row: Comparison) -> str:
    """Return what has to be known beside an open row; what it was measured on is folded."""
    sight = ""
    if row.status == "inconclusive" and row.detectable is not None and not row.findings:
        sight = f"a change of {format_share(row.detectable)} was in sight"
    confirmed = {True: "confirmed", False: "unconfirmed", None: ""}[row.confirmed]
    if row.confirmed and row.status != "regressed":
        confirmed = ""
    accepted = accepted_text(row.accepted, row) if row.accepted else ""
    return "; ".join(part for part in (accepted, confirmed, sight, *row.warnings) if part)


def reasons_of(
    rows: Sequence[Comparison], report: Report, whys: Iterable[CaseWhy]
) -> tuple[Mapping[tuple[str, str], Because], frozenset[Explanation], tuple[CaseWhy, ...]]:
    """Return by (case, metric) why each of ``rows`` moved, the explanations among these, and the
    ``whys`` that no row has.

    A why goes to the row that it explains, else to the case's first one that has none.
    """
    found: dict[tuple[str, str], Because] = {}
    left = []
    for why in whys:
        free = [
            row
            for row in rows
            if row.case == why.case
            and (row.case, row.metric) not in found
            and why.explains
            and _is_short(why.text)
        ]
        row = next((one for one in free if explains(why.lead, one)), free[0] if free else None)
        if row is None:
            left.append(why)
        else:
            found[row.case, row.metric] = Because(why.text, why.lead.file, why.lead.line)
    told = {why.case for why in report.why if why.differences}
    used = set()
    shown = {(row.case, row.metric) for row in rows}
    for one in dict.fromkeys(report.explanations):
        key = (one.case, one.metric)
        if key in shown and key not in found and one.case not in told and _is_short(one.text):
            found[key] = Because(one.text, one.file, one.line)
            used.add(one)
    return found, frozenset(used), tuple(left)


def _is_short(text: str) -> bool:
    return len(clean_line(text, 2 * LONGEST_REASON)) <= LONGEST_REASON
