"""Bursts that were kept off their core: more on head is a finding, and the tail has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import permutation_test

from perfci.model.measuring import WorkerOutput
from perfci.model.words import words
from perfci.stats.t_tests import sign_flip_p
from perfci.verdict.case_comparisons import compare_case, delayed_more
from perfci.verdict.policy import Policy
from tests.verdict.workers import case, worker


def side(name: str, delayed: Sequence[int], tail: float = 3.0) -> tuple[WorkerOutput, ...]:
    return tuple(
        worker(
            name,
            number,
            {"latency_p50": 1.0, "latency_p95": 1.0 + number / 1000},
            bursts_measured=100,
            bursts_delayed=count,
            with_delayed={"latency_p95": tail + number / 1000} if count else {},
        )
        for number, count in enumerate(delayed, start=1)
    )


def test_p_is_that_of_scipys_exact_permutation_of_signs() -> None:
    for seed in range(20):
        differences = np.random.default_rng(seed).integers(-4, 7, 8)
        reference = permutation_test(
            (differences,), np.sum, permutation_type="samples", alternative="greater"
        )
        assert sign_flip_p(differences.tolist()) == pytest.approx(reference.pvalue)


def test_rounds_without_a_difference_prove_nothing() -> None:
    assert sign_flip_p([0] * 5) == 1.0
    assert sign_flip_p([0, 3, 3, 3, 3]) == 1 / 16


def test_one_round_with_many_delayed_bursts_is_a_neighbours_doing() -> None:
    assert delayed_more(side("base", [0] * 5), side("head", [80, 0, 0, 0, 0])) is None


def test_more_in_each_of_five_rounds_is_heads_doing_and_counted() -> None:
    finding = delayed_more(side("base", [1, 0, 2, 0, 0]), side("head", [4, 3, 5, 2, 9]))
    assert finding is not None
    assert finding.arguments == {"head": 23, "base": 3, "bursts": 500, "p": 1 / 32}
    assert words(finding).startswith("head's workers were kept off their core in 23 of 500 bursts")


def test_fewer_on_head_is_no_finding() -> None:
    assert delayed_more(side("base", [4, 3, 5, 2, 9]), side("head", [1, 0, 2, 0, 0])) is None


def test_rounds_that_one_side_lacks_are_not_counted() -> None:
    assert delayed_more(side("base", [0] * 4), side("head", [4, 3, 5, 2, 9])) is None


def test_the_tail_includes_them_on_both_sides_and_the_median_stays() -> None:
    base, head = side("base", [0, 0, 1, 0, 0]), side("head", [4, 3, 5, 2, 9])
    rows = {row.metric: row for row in compare_case(case(), base, head, Policy(), paired=True)}
    tail = rows["latency_p95"]
    assert tail.head is not None
    assert min(tail.head.values) == pytest.approx(3.003, rel=1e-3)
    assert tail.base is not None
    assert max(tail.base.values) == pytest.approx(3.003)
    assert [finding.code for finding in tail.findings] == ["delayed-more"]
    assert "delayed-more" not in [finding.code for finding in rows["latency_p50"].findings]


def test_sides_delayed_alike_keep_them_excluded() -> None:
    base, head = side("base", [4, 3, 5, 2, 9]), side("head", [4, 3, 5, 9, 2])
    (tail,) = (
        row
        for row in compare_case(case(), base, head, Policy(), paired=True)
        if row.metric == "latency_p95"
    )
    assert tail.ratio == pytest.approx(1.0)
    assert tail.head is not None
    assert max(tail.head.values) < 1.1
