"""Ranks that return different outputs where they must not: how many, and which."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from perfci.metrics.accuracy import TOLERANCE, apart, reading_of, sketched  # noqa: E402
from perfci.model.report import Comparison  # noqa: E402
from perfci.model.words import words  # noqa: E402
from perfci.verdict.case_comparisons import compare_case  # noqa: E402
from perfci.verdict.decision import decide  # noqa: E402
from perfci.verdict.policy import Policy  # noqa: E402
from perfci.verdict.row_status import adjust  # noqa: E402
from tests.verdict.workers import case, worker  # noqa: E402

pytestmark = pytest.mark.torch
NAME = "differing_ranks"
EPS = torch.finfo(torch.float32).eps
NUMBERS = torch.linspace(-1.0, 1.0, 5000)


def differing(*outputs: Any) -> tuple[float | None, str]:
    """Return how many of the ranks differ, and what is said of the first of them."""
    reading = reading_of([sketched(output) for output in outputs])
    remark = reading.remarks.get(NAME)
    return reading.values.get(NAME), words(remark) if remark else reading.missing.get(NAME, "")


def test_the_rank_that_returns_something_else_is_named_even_if_it_is_the_first() -> None:
    wrong = {"loss": 1.0, "gradients": NUMBERS * 1.5}
    right = {"loss": 1.0, "gradients": NUMBERS}
    assert differing(right, right, right) == (0.0, "")
    count, text = differing(wrong, right, right)
    assert count == 1.0
    assert text.startswith("rank 0 returns something else than rank 1, ")
    assert differing(right, wrong)[1].startswith("rank 1 returns something else than rank 0")


def test_outputs_are_as_far_apart_as_their_difference_is_long() -> None:
    for change in (NUMBERS, torch.randn(5000, generator=torch.Generator().manual_seed(1))):
        truth = float((0.01 * change).norm() / NUMBERS.norm()) / EPS
        distance = apart(sketched(NUMBERS + 0.01 * change), sketched(NUMBERS))
        assert 0.4 * truth < distance < 2.0 * truth


def test_rounding_of_a_few_eps_is_no_difference() -> None:
    few, many = (sketched(NUMBERS * (1.0 + eps * EPS)) for eps in (2.0, 4.0 * TOLERANCE))
    assert apart(few, sketched(NUMBERS)) <= TOLERANCE < apart(many, sketched(NUMBERS))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NUMBERS, NUMBERS[:-1]),
        (NUMBERS, NUMBERS.double()),
        (NUMBERS, None),
        (torch.tensor([1, 2]), torch.tensor([1, 3])),
        (torch.tensor([True]), torch.tensor([False])),
        (torch.tensor([1.0, math.nan]), torch.tensor([math.nan, 1.0])),
        (torch.tensor([math.inf]), torch.tensor([-math.inf])),
        ({"a": 1}, {"b": 1}),
        ("text", "other"),
        (3, 4),
    ],
)
def test_what_has_to_be_equal_is_of_another_kind(one: Any, other: Any) -> None:
    assert differing(one, one) == (0.0, "")
    assert differing(one, other)[0] == 1.0
    assert "eps" not in differing(one, other)[1]


def test_numbers_that_are_no_numbers_in_the_same_places_are_equal() -> None:
    same = torch.tensor([1.0, math.nan, math.inf, 0.5])
    assert differing(same, same.clone()) == (0.0, "")
    assert differing(torch.zeros(3), torch.zeros(3)) == (0.0, "")
    assert differing(torch.ones(0), torch.ones(0)) == (0.0, "")


def test_steps_that_return_nothing_or_what_cannot_be_compared_have_no_number() -> None:
    assert differing(None, None) == (None, "the steps of the ranks return nothing")
    assert differing(object(), object()) == (None, "`output` is a object")


def compared(base: list[float], head: list[float]) -> Comparison:
    sides = (
        [worker(side, number, {NAME: value}) for number, value in enumerate(values, start=1)]
        for side, values in (("base", base), ("head", head))
    )
    policy = Policy()
    (row,) = adjust(compare_case(case(), *sides, policy, paired=True), policy)
    return row


def test_ranks_that_differ_on_head_alone_fail_and_those_that_always_did_do_not() -> None:
    row = compared([0.0, 0.0], [1.0, 1.0])
    assert (row.status, row.gate, row.method) == ("regressed", "fail", "exact")
    assert decide((row,), (), Policy()).status == "fail"
    assert compared([1.0, 1.0], [1.0, 1.0]).status == "unchanged"
    assert compared([1.0, 1.0], [0.0, 0.0]).status == "improved"


def test_ranks_that_differ_in_some_rounds_of_head_are_not_passed() -> None:
    row = compared([0.0] * 5, [0.0, 1.0, 0.0, 1.0, 0.0])
    assert row.status == "inconclusive"
    assert decide((row,), (), Policy()).status == "inconclusive"
