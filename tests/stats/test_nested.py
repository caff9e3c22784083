"""Pairs nested within ancestors: the interval is that of ancestors, and never narrower."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfci.finding import ANCESTORS_DIFFER, finding
from perfci.stats.evidence import paired_evidence
from perfci.stats.t_tests import Resolution, components, grouped, how_many, nested_t, paired_t

values = st.integers(-999, 999).map(lambda whole: whole / 7.0)
ancestors = st.integers(0, 4)
nested_pairs = st.lists(st.tuples(values, values, ancestors), min_size=2, max_size=14)

ALIKE = ((0.01, -0.02, 0.03, -0.01, 0.0, 0.02), (1, 1, 2, 2, 3, 3))
APART = ((0.051, 0.049, -0.02, -0.021, 0.011, 0.009), (1, 1, 2, 2, 3, 3))


def test_with_as_many_pairs_of_each_ancestor_it_is_the_t_test_of_their_means() -> None:
    differences, of = APART
    test = nested_t([0.0] * 6, differences, of)
    means = [np.mean(group) for group in grouped(differences, of)]
    reference = stats.ttest_1samp(means, 0.0)
    interval = reference.confidence_interval(0.95)
    assert (test.p, test.df) == pytest.approx((reference.pvalue, 2))
    assert (test.lo, test.hi) == pytest.approx((interval.low, interval.high))
    (differ,) = test.warnings
    assert (differ.code, differ.arguments["ancestors"]) == (ANCESTORS_DIFFER, 3)
    alone = paired_t([0.0] * 6, differences)
    assert differ.arguments["wider"] == pytest.approx((test.hi - test.lo) / (alone.hi - alone.lo))


def test_ancestors_that_are_alike_still_have_their_degrees_of_freedom() -> None:
    differences, of = ALIKE
    test, pooled = nested_t([0.0] * 6, differences, of), paired_t([0.0] * 6, differences)
    assert (test.estimate, test.df, test.warnings) == (pooled.estimate, 2, ())
    assert test.se >= pooled.se
    assert test.hi - test.lo > pooled.hi - pooled.lo


def test_the_f_test_is_that_of_the_analysis_of_variance() -> None:
    groups = [[0.1, 0.3], [0.2, 0.25, 0.4], [0.05]]
    assert components(groups).p == pytest.approx(stats.f_oneway(*groups).pvalue)


def test_the_components_are_those_of_searle_casella_and_mcculloch() -> None:
    groups = [[1.0, 2.0, 3.0], [5.0, 7.0]]  # MSA 19.2, MSE 4 / 3, n_0 = 5 - 13 / 5
    parts = components(groups)
    assert (parts.within, parts.between) == pytest.approx((4 / 3, (19.2 - 4 / 3) / 2.4))


def test_one_ancestor_says_nothing_of_the_variance_between_ancestors() -> None:
    test = nested_t([0.0] * 3, (0.1, 0.2, 0.3), (7, 7, 7))
    assert test.estimate == pytest.approx(0.2)
    assert (test.p, test.lo, test.warnings) == (None, None, (finding("one-ancestor"),))


def test_fewer_pairs_than_it_takes_give_the_estimate_alone() -> None:
    base, head, of = (1.0, 1.1, 1.0, 1.2), (1.1, 1.2, 1.1, 1.3), (1, 1, 2, 2)
    enough = paired_evidence(base, head, alpha=0.01, ancestors=of)
    fewer = paired_evidence(base, head, alpha=0.01, ancestors=of, fewest=5)
    assert (enough.ancestors, fewer.ancestors) == (2, 2)
    assert enough.p is not None
    assert (fewer.ratio, fewer.p, fewer.ratio_lo) == (enough.ratio, None, None)


@given(st.lists(st.tuples(values, values), max_size=12))
def test_pairs_with_an_ancestor_each_are_the_paired_test(pairs: list) -> None:
    base, head = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    plain = paired_t(base, head)
    assert nested_t(base, head, [0] * len(base)) == plain
    assert nested_t(base, head, range(1, len(base) + 1)) == plain


@given(nested_pairs)
def test_swapping_the_sides_mirrors_the_test(pairs: list) -> None:
    base, head, of = zip(*pairs, strict=True)
    forth, back = nested_t(base, head, of), nested_t(head, base, of)
    assert forth.estimate == pytest.approx(-back.estimate)
    assert (forth.p, forth.df) == (back.p, back.df)
    if forth.lo is not None:
        assert (forth.lo, forth.hi) == pytest.approx((-back.hi, -back.lo))


@given(nested_pairs, st.randoms())
def test_the_order_of_pairs_within_an_ancestor_does_not_matter(pairs: list, rng: object) -> None:
    shuffled = list(pairs)
    rng.shuffle(shuffled)
    one, other = (nested_t(*zip(*each, strict=True)) for each in (pairs, shuffled))
    assert (one.df, one.p is None) == (other.df, other.p is None)
    if one.p is not None:
        assert one.estimate == pytest.approx(other.estimate, abs=1e-9)
        assert one.se == pytest.approx(other.se, rel=1e-6, abs=1e-9)


@given(nested_pairs)
def test_any_test_is_the_paired_one_or_has_the_ancestors_degrees_of_freedom(pairs: list) -> None:
    base, head, of = zip(*pairs, strict=True)
    test, plain = (
        nested_t(base, head, of, resolution=Resolution(1e-9)),
        paired_t(base, head, resolution=Resolution(1e-9)),
    )
    assert test.estimate == plain.estimate
    if test.p is None or test == plain:
        return
    assert test.df == how_many(of) - 1
    assert all(map(math.isfinite, (test.se, test.p, test.lo, test.hi)))
    assert test.se >= plain.se
    assert all(warning.arguments["wider"] > 1.0 for warning in test.warnings)


def held(design: Sequence[int], between: float, seed: int, runs: int = 4000) -> tuple[float, float]:
    """Return how many intervals hold that know of ancestors, and of those that don't."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(1, len(design) + 1), design)
    luck = rng.normal(0.0, between, (runs, len(design)))[:, of - 1]
    rounds = (luck + rng.normal(0.0, 1.0, (runs, len(of)))).tolist()
    base, groups = [0.0] * len(of), of.tolist()
    nested = [nested_t(base, one, groups) for one in rounds]
    plain = [paired_t(base, one) for one in rounds]
    return tuple(float(np.mean([t.lo <= 0.0 <= t.hi for t in tests])) for tests in (nested, plain))


@pytest.mark.parametrize("design", [(2, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3), (3, 2, 2, 2, 2)])
@pytest.mark.parametrize("between", [0.0, 0.5, 1.0, 2.0])
def test_intervals_of_four_ancestors_hold_whatever_lies_between_them(
    design: tuple[int, ...], between: float
) -> None:
    nested, plain = held(design, between, seed=len(design))
    assert nested >= 0.94
    if between == 2.0:
        assert plain < nested  # which is why


def test_intervals_of_two_ancestors_hold_as_well() -> None:
    nested, plain = held((3, 3), 2.0, seed=9)
    assert nested >= 0.94
    assert plain < 0.8
