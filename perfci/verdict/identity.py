"""Rows of a case that is the same code on both sides: nothing can have changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfci.model.finding import found
from perfci.model.report import Comparison
from perfci.verdict.margin import threshold_of, worse_by

SAME_CODE = found("same-code")


def may_be_same_code(rows: Sequence[Comparison]) -> bool:
    """Say whether no row speaks against it.

    Counts agree, both sides have each metric, and no metric that may fail the report moved by more
    than its threshold.
    """
    return all(
        row.status == "unchanged"
        if row.method == "exact"
        else row.method == "paired_t" and not (row.gate == "fail" and _moved(row))
        for row in rows
    )


def same_code_rows(rows: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Return rows that are ``unchanged`` without a test; each side's own number stays.

    A row that moved by more than its threshold stays as it was compared: undecided.
    """
    return tuple(row if row.method == "exact" or _moved(row) else _unchanged(row) for row in rows)


def _moved(row: Comparison) -> bool:
    """Say whether the row changed by more than its threshold, for better or worse, or by what
    can't be said.
    """
    change, _, _ = worse_by(row)
    return change is None or abs(change) > threshold_of(row)


def _unchanged(row: Comparison) -> Comparison:
    return replace(
        row,
        method="same_code",
        status="unchanged",
        ratio=None,
        ratio_lo=None,
        ratio_hi=None,
        difference=None,
        difference_lo=None,
        difference_hi=None,
        p=None,
        welch_p=None,
        df=None,
        cohens_d=None,
        detectable=None,
        caveat=None,
        findings=(SAME_CODE,),
    )
