"""Which failures a reader is shown beside the rows, and which of them are one and the same."""

from __future__ import annotations

import re
from dataclasses import replace

from perfci.record.case import Failure
from perfci.record.report import Report

_WORD = re.compile(r"[^\s\"'`]+")
_TREE = re.compile(r"/(?:trees|builds)(?=/[^/])")
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
    places = (_NUMBER.sub("0", _WORD.sub(_without_tree, text)) for text in said)
    return (failure.case, failure.stage, failure.kind, *places)


def _without_tree(found: re.Match[str]) -> str:
    """Return a word of a log without the folder that perfci made, and all before it.

    Two passes, each linear: one expression for both tried every place a word could begin at.
    """
    word = found[0]
    *_, last = (0, *(tree.end() for tree in _TREE.finditer(word)))
    if not last:
        return word
    rest = word.find("/", last + 1)
    return "tree" + (word[rest:] if rest >= 0 else "")
