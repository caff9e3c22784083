"""Which failures a reader is shown beside the rows, and which of them are one and the same."""

from __future__ import annotations

import re
from dataclasses import replace

from perfci.record.case import Failure
from perfci.record.report import Report

_TREE = re.compile(r"[^\s\"'`]*/(?:trees|builds)/[^/\s\"'`]+")
_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")
"""Addresses, process ids and line numbers differ between two runs of one failure."""


def shown_failures(report: Report) -> tuple[Failure, ...]:
    """Return the failures to show; one that both sides had alike is ``base and head``'s.

    A case that failed on base only is a ``new`` row, which says why: it isn't shown again.
    """
    new = {row.case for row in report.results if row.status == "new"}
    shown: dict[tuple[str, ...], Failure] = {}
    for failure in report.failures:
        if failure.side == "base" and failure.case in new:
            continue
        alike = likeness(failure)
        before = shown.get(alike)
        if before is None:
            shown[alike] = failure
        elif failure.side not in before.side.split():
            shown[alike] = replace(before, side=f"{before.side} and {failure.side}")
    return tuple(shown.values())


def likeness(failure: Failure) -> tuple[str, ...]:
    """Return what is alike in two failures that a reader would act on in the same way."""
    said = (failure.message, failure.log_tail)
    places = (_NUMBER.sub("0", _TREE.sub("tree", text)) for text in said)
    return (failure.case, failure.stage, failure.kind, *places)
