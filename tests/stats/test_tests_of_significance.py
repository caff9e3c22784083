"""The t tests beside scipy.stats, and what they must never say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfci.finding import finding
from perfci.stats.evidence import cohens_d, magnitude, paired_evidence, unpaired_evidence
from perfci.stats.t_tests import paired_t, welch_t, welch_t_of_sessions

BASE = (1.02, 0.98, 1.05, 1.01, 0.97, 1.00)
HEAD = (1.10, 1.04, 1.15, 1.07, 1.03, 1.09)

values = st.floats(1e-6, 1e6)
pairs = st.lists(st.tuples(values, values), min_size=2, max_size=12)


def test_welch_agrees_with_scipy() -> None:
    ours = welch_t(BASE, HEAD[:4])
    reference = stats.ttest_ind(HEAD[:4], BASE, equal_var=False)
    interval = reference.confidence_interval(0.95)
    assert ours.p == pytest.approx(reference.pvalue, rel=1e-10)
    assert ours.df == pytest.approx(reference.df, rel=1e-10)
    assert (ours.lo, ours.hi) == pytest.approx((interval.low, interval.high), rel=1e-10)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_welchs_degrees_of_freedom_do_not_depend_on_the_unit(unit: float) -> None:
    base, head = ([unit * value for value in side] for side in (BASE, HEAD[:4]))
    scaled, plain = welch_t(base, head), welch_t(BASE, HEAD[:4])
    assert (scaled.df, scaled.p) == pytest.approx((plain.df, plain.p), rel=1e-9)


def test_the_paired_test_agrees_with_scipy() -> None:
    ours = paired_t(BASE, HEAD)
    reference = stats.ttest_rel(HEAD, BASE)
    interval = reference.confidence_interval(0.95)
    assert ours.p == pytest.approx(reference.pvalue, rel=1e-10)
    assert (ours.lo, ours.hi) == pytest.approx((interval.low, interval.high), rel=1e-10)


def test_together_is_the_paired_test_of_log_ratios_with_welch_beside_it() -> None:
    evidence = paired_evidence(BASE, HEAD, alpha=0.01)
    logs = np.log(HEAD), np.log(BASE)
    assert evidence.p == pytest.approx(stats.ttest_rel(*logs).pvalue, rel=1e-9)
    assert evidence.welch_p == pytest.approx(
        stats.ttest_ind(*logs, equal_var=False).pvalue, rel=1e-9
    )
    assert evidence.ratio == pytest.approx(stats.gmean(HEAD) / stats.gmean(BASE))


def test_cohens_d_divides_by_the_pooled_spread_of_the_sides() -> None:
    pooled = math.sqrt((5 * np.var(BASE, ddof=1) + 3 * np.var(HEAD[:4], ddof=1)) / 8)
    expected = (np.mean(HEAD[:4]) - np.mean(BASE)) / pooled
    assert cohens_d(BASE, HEAD[:4]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("d", "word"),
    [
        (0.0, "negligible"),
        (-0.19, "negligible"),
        (0.2, "small"),
        (-0.49, "small"),
        (0.5, "medium"),
        (0.79, "medium"),
        (-0.8, "large"),
        (12.0, "large"),
    ],
)
def test_an_effect_has_cohens_word_whatever_its_sign(d: float, word: str) -> None:
    assert magnitude(d) == word


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ((), ()),
        ((1.0,), (2.0,)),
        ((1.0, 1.0, 1.0), (2.0, 2.0, 2.0)),
        ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
        ((0.1, 0.2, 0.3), (0.11, 0.22, 0.33)),
        ((1.0, math.nan, 1.1), (2.0, 2.1, 2.2)),
        ((1.0, 1.2, 1.1), (2.0, math.inf, 2.2)),
        ((math.inf, math.inf), (math.inf, -math.inf)),
        ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    ],
)
def test_degenerate_pairs_are_no_evidence(base: tuple, head: tuple) -> None:
    evidence = paired_evidence(base, head, alpha=0.01)
    assert evidence.p is None
    assert evidence.detectable is None
    assert evidence.findings


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ((1.0, 1.0, 1.0), (2.0, 2.0, 2.0)),
        ((1.0, 1.0, 1.0), (2.0, 2.1, 2.2)),
        ((1.0, 1.1), (2.0,)),
        ((1.0, math.nan), (2.0, 2.1)),
        ((), (2.0, 2.1)),
    ],
)
def test_degenerate_groups_are_no_evidence(base: tuple, head: tuple) -> None:
    evidence = unpaired_evidence([base], head, alpha=0.01)
    assert evidence.p is None
    assert evidence.findings


def test_sides_equal_to_the_last_digit_bound_the_change_at_zero_without_a_p() -> None:
    evidence = paired_evidence((3.0, 4.0), (3.0, 4.0), alpha=0.01)
    assert (evidence.p, evidence.ratio_lo, evidence.ratio_hi) == (None, 1.0, 1.0)


@pytest.mark.parametrize("absolute", [True, False])
def test_the_same_change_in_whole_steps_every_round_is_a_change(absolute: bool) -> None:
    base, head = (8_445_952.0,) * 8, (16_834_560.0,) * 8
    assert paired_evidence(base, head, alpha=0.01, absolute=absolute).p is None
    paired = paired_evidence(base, head, alpha=0.01, absolute=absolute, step=4096.0)
    unpaired = unpaired_evidence([base], head, alpha=0.01, absolute=absolute, step=4096.0)
    for evidence in (paired, unpaired):
        assert evidence.p is not None
        assert evidence.p < 1e-9
    if absolute:
        assert paired.difference_lo < 8 << 20 < paired.difference_hi
        assert paired.difference_hi - paired.difference_lo < 4096.0


def test_values_of_zero_fall_back_to_arithmetic_means_and_say_so() -> None:
    evidence = paired_evidence((0.0, 1.0, 2.0, 1.0), (1.0, 2.0, 3.5, 2.0), alpha=0.01)
    assert evidence.ratio == pytest.approx(8.5 / 4.0)
    assert finding("arithmetic-means") in evidence.findings


@given(pairs)
def test_swapping_the_sides_inverts_the_ratio_and_keeps_p(sides: list) -> None:
    base, head = zip(*sides, strict=True)
    forth, back = paired_evidence(base, head, alpha=0.01), paired_evidence(head, base, alpha=0.01)
    assert forth.ratio * back.ratio == pytest.approx(1.0)
    assert (forth.p is None) == (back.p is None)
    if forth.p is not None:
        assert forth.p == pytest.approx(back.p)
        assert forth.ratio_lo * back.ratio_hi == pytest.approx(1.0)
        assert forth.cohens_d == pytest.approx(-back.cohens_d)


@given(pairs, st.floats(1e-3, 1e3))
def test_the_unit_of_the_values_does_not_matter(sides: list, scale: float) -> None:
    base, head = zip(*sides, strict=True)
    plain = paired_evidence(base, head, alpha=0.01)
    scaled = paired_evidence([scale * v for v in base], [scale * v for v in head], alpha=0.01)
    assert scaled.ratio == pytest.approx(plain.ratio)
    if plain.p is not None and scaled.p is not None and plain.se > 1e-9:
        assert scaled.p == pytest.approx(plain.p, rel=1e-4)


@given(pairs)
def test_every_number_of_any_evidence_is_finite(sides: list) -> None:
    base, head = zip(*sides, strict=True)
    for evidence in (
        paired_evidence(base, head, alpha=0.01),
        unpaired_evidence([base], head, alpha=0.01),
    ):
        numbers = [getattr(evidence, name) for name in evidence.__slots__]
        assert all(math.isfinite(n) for n in numbers if isinstance(n, float))


def test_one_session_is_welch_with_a_warning() -> None:
    ours = welch_t_of_sessions([BASE], HEAD)
    assert ours.p == pytest.approx(welch_t(BASE, HEAD).p)
    assert finding("one-session-of-spread") in ours.warnings


def test_sessions_that_differ_widen_the_interval_of_the_same_workers() -> None:
    sessions = [(1.00, 1.01, 0.99), (1.10, 1.11, 1.09), (1.05, 1.06, 1.04)]
    head = (1.15, 1.16, 1.14)
    with_sessions = welch_t_of_sessions(sessions, head)
    without = welch_t([value for session in sessions for value in session], head)
    assert with_sessions.se == pytest.approx(0.05 * math.sqrt(4 / 3))
    assert with_sessions.df == pytest.approx(2)
    assert with_sessions.p > without.p


def test_a_share_of_a_baseline_with_zeros_is_of_the_mean_of_its_sessions() -> None:
    evidence = unpaired_evidence([[1.0], [8.0], [1.0, 1.0]], [1.0, 0.0], alpha=0.01)
    assert evidence.ratio == pytest.approx(0.5 / (10.0 / 3.0))
