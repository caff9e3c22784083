"""Commands that compare a report's cases again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from perfci.model.report import Comparison, Report
from perfci.report.clean import clean_line

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SELECTABLE = re.compile(r"[^\s()]+")
"""A case's id that ``-k`` takes as a single word."""
_OPERATORS = frozenset({"and", "or", "not"})
"""Words that ``-k`` takes for operators."""
_SHA_DIGITS = 12
"""Digits of a hash in a replay line for people."""
_MOST_CASES = 4
"""Most cases in a replay line."""


def replay_command(report: Report, digits: int = 64) -> str:
    """Return the replay command without its case (it ends in ``-k``), or "".

    There is no such command if a side is a working tree, head was measured alone, or the benchmark
    files are no commit's.
    """
    sides = (report.base, report.head)
    if any(side is None or side.dirty or not _SHA.fullmatch(side.sha) for side in sides):
        return ""
    if report.benchmarks_of and not _SHA.fullmatch(report.benchmarks_of):
        return ""
    of = report.benchmarks_of[:digits]
    files = f" --benchmarks-of {of}" if of else ""
    return f"perfci compare {' '.join(side.sha[:digits] for side in sides if side)}{files} -k "


def replay_line(report: Report, rows: Sequence[Comparison]) -> str:
    """Return the command that compares the first cases of ``rows`` again, or nothing."""
    cases = dict.fromkeys(row.case for row in rows)
    known = [case for case in cases if selection_of(case)][:_MOST_CASES]
    again = replay_command(report, _SHA_DIGITS)
    if not known or not again:
        return ""
    rounds = _rounds(report, rows)
    return again + shlex.quote(" or ".join(known)) + (f" --rounds {rounds}" if rounds else "")


def replay_of(report: Report, case: str) -> str:
    """Return the whole command that measures ``case`` again, or ""."""
    again, selected = replay_command(report), selection_of(case)
    return again + selected if again and selected else ""


def selection_of(case: str) -> str:
    """Return the argument of ``-k`` that selects ``case``, quoted for a shell, or "".

    Empty for a name with blanks or invisible characters: no benchmark has one, so it comes from an
    edited report, and isn't offered for pasting. Empty, too, for names that ``-k`` takes for
    operators.
    """
    plain = (
        clean_line(case, 1000) == case
        and _SELECTABLE.fullmatch(case)
        and case.lower() not in _OPERATORS
    )
    return shlex.quote(case) if plain else ""


def _rounds(report: Report, rows: Iterable[Comparison]) -> int:
    """Return the rounds that would decide the rows that leave the verdict open, or 0 if unknown."""
    open_rows = {
        (reason.case, reason.metric)
        for reason in report.verdict.findings
        if reason.code == "undecided"
    }
    wanted = (
        finding.arguments.get("needed") or finding.arguments.get("rounds")
        for row in rows
        for finding in row.findings
        if (row.case, row.metric) in open_rows and finding.arguments.get("setting") == "rounds"
    )
    return max((number for number in wanted if isinstance(number, int)), default=0)
