"""Rounds that share ancestors: what keeps few of them, or some that differ, from counting."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from perfci.finding import ANCESTORS_DIFFER
from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from perfci.verdict.stopping import awaits_rounds, rounds_of_ancestor, wants_rounds
from tests.verdict.workers import case, worker

METRIC = "latency_p50"
POLICY = Policy()
PAIRS = (1, 1, 2, 2, 3, 3, 4, 4)
WOBBLE = (0.001, -0.002, 0.002, 0.0, -0.001, 0.0015, -0.0005, 0.001)


def judged(ancestors: Sequence[int], changes: Sequence[float]) -> Comparison:
    pairs = list(zip(ancestors, changes, strict=True))
    base = [worker("base", n, {METRIC: 0.01}, ancestor=of) for n, (of, _) in enumerate(pairs, 1)]
    head = [
        worker("head", n, {METRIC: 0.01 * (1.0 + change)}, ancestor=of)
        for n, (of, change) in enumerate(pairs, 1)
    ]
    (row,) = adjust(compare_case(case(), base, head, POLICY, paired=True), POLICY)
    return row


def test_rounds_of_one_ancestor_carry_no_interval_and_no_verdict() -> None:
    row = judged((1,) * 6, WOBBLE[:6])
    assert (row.ratio_lo, row.p, row.status, row.ancestors) == (None, None, "inconclusive", 1)
    assert wants_rounds(row, POLICY, 1)


def test_rounds_that_share_ancestors_have_an_interval_that_is_no_narrower() -> None:
    row = judged((1, 1, 2, 3, 4), WOBBLE[:5])
    alone = judged((0,) * 5, WOBBLE[:5])
    assert (row.status, row.ancestors, alone.ancestors) == ("unchanged", 4, 5)
    assert (row.df, alone.df) == (3, 4)
    assert row.se >= alone.se


def test_ancestors_that_differ_widen_the_interval_and_say_so() -> None:
    apart = [0.04 * (-1) ** of + wobble for of, wobble in zip(PAIRS, WOBBLE, strict=True)]
    row = judged(PAIRS, apart)
    assert row.findings[0].code == ANCESTORS_DIFFER
    assert (row.df, row.method) == (3, "paired_t")
    assert "the 4 ancestors of the rounds differ" in row.warnings[0]
    assert "rounds would detect 5 %" in row.warnings[-1]


def test_a_change_that_few_ancestors_show_may_be_between_process_variance() -> None:
    row = judged(PAIRS, [0.1 + wobble for wobble in WOBBLE])
    assert (row.status, row.findings[-1].code) == ("inconclusive", "looks-regressed")
    assert "8 rounds of 4 ancestors cannot rule out between-process variance" in row.warnings[-1]
    assert awaits_rounds(row, POLICY, 1)
    sure = judged((0,) * 8, [0.1 + wobble for wobble in WOBBLE])
    assert sure.status == "regressed"


@pytest.mark.parametrize("ancestors", [(1, 1, 1, 1, 1), (1, 2, 3, 3, 3)])
def test_a_change_that_too_few_ancestors_show_asks_for_more(ancestors: tuple[int, ...]) -> None:
    row = judged(ancestors, [0.1 + wobble for wobble in WOBBLE[:5]])
    assert row.status == "inconclusive"
    assert awaits_rounds(row, POLICY, 1)


@pytest.mark.parametrize("least", [5, 8, 20])
def test_each_of_the_least_rounds_has_an_ancestor_of_its_own(least: int) -> None:
    for rounds in range(least):
        rows = [judged(range(1, rounds + 1), [0.0] * rounds)] if rounds else []
        assert rounds_of_ancestor(rows, (METRIC,), rounds=rounds, least=least) == 1


def test_a_change_that_has_to_be_believed_gets_an_ancestor_for_each_further_round() -> None:
    """Its first rounds had one each: five rounds more would have been needed than ancestors."""
    row = judged(range(1, 6), [0.1 + change for change in WOBBLE[:5]])
    assert rounds_of_ancestor([row], (METRIC,), rounds=5, least=5) == 1
