"""Rows of a case that is the same code on both sides: nothing can have changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfci.model.finding import found
from perfci.model.report import Comparison
from perfci.verdict.decision import placeholder
from perfci.verdict.policy import Policy

SAME_CODE = found("same-code")


def may_be_same_code(rows: Sequence[Comparison]) -> bool:
    """Say whether no row speaks against it: counts agree, and both sides have each metric."""
    return all(
        row.status == "unchanged" if row.method == "exact" else row.method == "paired_t"
        for row in rows
    )


def unmeasured_row(case: str, policy: Policy) -> Comparison:
    """Return the only row of a case that was seen to be the same code, and not measured."""
    return replace(placeholder(case, "unchanged", policy, SAME_CODE), method="same_code")


def same_code_rows(rows: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Return rows that are ``unchanged`` without a test; each side's own number stays."""
    return tuple(row if row.method == "exact" else _unchanged(row) for row in rows)


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
