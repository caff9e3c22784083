"""A rank is blamed only where head's ranks are less equal than base's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.finding import finding
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from tests.verdict.workers import both, case

SLOW = finding("slow-rank", rank=0, slower=1.19e-3)


@pytest.mark.parametrize(("ratio", "blamed"), [(1.0, False), (1.3, True), (0.8, False)])
def test_a_rank_is_blamed_where_the_sides_differ(ratio: float, blamed: bool) -> None:
    base, head = both("rank_imbalance", ratio, scale=1.2)
    head = tuple(replace(one, remarks={"rank_imbalance": SLOW}) for one in head)
    (row,) = compare_case(case(), base, head, Policy(), paired=True)
    assert (SLOW in row.findings) is blamed
