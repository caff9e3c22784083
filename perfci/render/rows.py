"""One comparison in words: change, interval, sides, what it was measured on, and how again."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable

from perfci.model.report import Accepted, Comparison, Estimate, Report
from perfci.render.clean import clean_line
from perfci.units import counted, format_change, format_interval, format_share, format_value


def change_text(row: Comparison) -> str:
    """Return the change head against base: ``+5.2 %``, or ``+1`` for an absolute metric."""
    if row.difference is not None:
        return _signed(row.difference, row.unit)
    if row.status == "regressed" and row.head is None:  # graph breaks, where there is no graph
        return "not compiled"
    return format_change(row.ratio)


def interval_text(row: Comparison) -> str:
    """Return the change's 95 % interval, ``+4.1 … +6.3 %``, or nothing where there is none."""
    if row.difference is not None:
        lo, hi = row.difference_lo, row.difference_hi
        if lo is None or hi is None or lo == hi:
            return ""
        return f"{_signed(lo, row.unit)} … {_signed(hi, row.unit)}"
    if row.ratio_lo is None or row.ratio_hi is None or row.ratio_lo == row.ratio_hi:
        return ""
    return format_interval(row.ratio_lo, row.ratio_hi, like=row.ratio)


def side_text(estimate: Estimate | None, unit: str) -> str:
    """Return one side's centre; a dash where that side has none."""
    return format_value(estimate.center if estimate else None, unit)


def side_interval(estimate: Estimate | None, unit: str) -> str:
    """Return one side's own interval, ``1.2 ms … 1.3 ms``, or nothing."""
    if estimate is None or estimate.lo is None or estimate.hi is None:
        return ""
    if estimate.lo == estimate.hi:
        return ""
    return f"{format_value(estimate.lo, unit)} … {format_value(estimate.hi, unit)}"


def measured_text(row: Comparison) -> str:
    """Return what the numbers rest on: pairs, workers of both sides, or an exact count."""
    base = row.base.workers if row.base else 0
    head = row.head.workers if row.head else 0
    match row.method:
        case "paired_t":
            return counted(head, "pair")
        case "welch_t":
            return f"{base} + {counted(head, 'worker')}"
        case "exact":
            return "exact"
        case "same_code":
            return "same code"
        case "none":
            return counted(head, "worker") if head else ""


def note(row: Comparison) -> str:
    """Return what a reader of the row has to know beside its numbers."""
    parts = [measured_text(row)]
    if row.confirmed is not None:
        measured = "confirmed" if row.status == "regressed" else "measured together"
        parts.append(measured if row.confirmed else "unconfirmed")
    if row.accepted:
        parts.append(accepted_text(row.accepted, row))
    elif row.status == "regressed" and row.gate != "fail":
        parts.append("warns only" if row.gate == "warn" else "for information")
    parts += row.warnings
    return "; ".join(part for part in parts if part)


def status_text(row: Comparison) -> str:
    """Return a row's status in words; a regression that fails nothing is ``accepted``."""
    return "accepted" if row.accepted else row.status.replace("_", " ")


def accepted_text(accepted: Accepted, row: Comparison) -> str:
    """Return who accepted the row, why, and how far."""
    by = f" by {clean_line(accepted.by, 80)}" if accepted.by else ""
    up_to = ""
    if accepted.up_to is not None:
        absolute = row.difference is not None
        limit = format_value(accepted.up_to, row.unit) if absolute else None
        up_to = f"up to {limit or format_share(accepted.up_to)}"
    until = f"until {accepted.until}" if accepted.until else ""
    bounds = ", ".join(one for one in (up_to, until) if one)
    return f"accepted{by}: {clean_line(accepted.because, 300)}" + (f" ({bounds})" * bool(bounds))


def detectable_text(row: Comparison) -> str:
    """Return the smallest change the row could have shown."""
    return format_share(row.detectable)


def has_numbers(row: Comparison) -> bool:
    """Return whether a side of the row has a number, or the row stands for a whole case."""
    return row.base is not None or row.head is not None


def size(row: Comparison) -> float:
    """Return how far the change goes in units of its threshold, whatever its direction."""
    if row.difference is not None:
        return abs(row.difference) / row.threshold if row.threshold > 0 else math.inf
    if row.ratio is None or row.ratio <= 0:
        return math.inf
    change = abs(math.log(row.ratio))
    return change / math.log1p(row.threshold) if row.threshold > 0 else math.inf


def _signed(value: float, unit: str) -> str:
    sign = "+" if value > 0 else "-" if value < 0 else "±"
    return f"{sign}{format_value(abs(value), unit)}"


# What measures a row again.

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SELECTABLE = re.compile(r"[^\s()]+")
"""What ``-k`` takes for one word."""
_JOINING = frozenset({"and", "or", "not"})
_SHORT = 12
_MOST_CASES = 4


def replay_command(report: Report) -> str:
    """Return what compares the two commits again, up to the case; nothing where one isn't known.

    A working tree is no commit; what has no base was measured alone.
    """
    sides = (report.base, report.head)
    if any(one is None or one.dirty or not _SHA.fullmatch(one.sha) for one in sides):
        return ""
    if report.benchmarks_of and not _SHA.fullmatch(report.benchmarks_of):
        return ""
    files = f" --benchmarks-of {report.benchmarks_of}" if report.benchmarks_of else ""
    return f"perfci compare {' '.join(one.sha for one in sides if one)}{files} -k "


def replay_line(report: Report, cases: Iterable[str], rounds: int = 0) -> str:
    """Return what compares the first of ``cases`` again, commits shortened; or nothing."""
    known = [case for case in cases if selection_of(case)][:_MOST_CASES]
    if not known or not replay_command(report):
        return ""
    sides = " ".join(one.sha[:_SHORT] for one in (report.base, report.head) if one)
    files = f" --benchmarks-of {report.benchmarks_of[:_SHORT]}" if report.benchmarks_of else ""
    more = f" --rounds {rounds}" if rounds else ""
    return f"perfci compare {sides}{files} -k {shlex.quote(' or '.join(known))}{more}"


def selection_of(case: str) -> str:
    """Return the argument of ``-k`` that selects ``case``, quoted for a shell, or nothing.

    A name with blanks or with what can't be seen is no benchmark's, and is not copied.
    """
    plain = (
        clean_line(case, 1000) == case
        and _SELECTABLE.fullmatch(case)
        and case.lower() not in _JOINING
    )
    return shlex.quote(case) if plain else ""


def replay_of(report: Report, case: str) -> str:
    """Return the line that measures ``case`` again, or nothing."""
    again, selected = replay_command(report), selection_of(case)
    return again + selected if again and selected else ""
