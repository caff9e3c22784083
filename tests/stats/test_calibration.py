"""The statistics judged by simulation: false alarms, coverage and power, with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest

from perfci.stats.evidence import holm, paired_evidence, unpaired_evidence
from perfci.stats.spread import detectable_difference, pairs_needed
from perfci.stats.t_tests import welch_t_of_sessions

RUNS = 4000
ALPHA = 0.01


def simulate(seed: int, change: float, rounds: int = 6) -> list:
    """Pairs as they are seen: 3 % shared by a round's workers, 0.5 % of each one's own."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(0.0, 0.03, (RUNS, rounds))
    base = np.exp(shared + rng.normal(0.0, 0.005, (RUNS, rounds)))
    head = np.exp(shared + rng.normal(np.log1p(change), 0.005, (RUNS, rounds)))
    return [
        paired_evidence(b, h, alpha=ALPHA)
        for b, h in zip(base.tolist(), head.tolist(), strict=True)
    ]


def test_the_same_code_is_called_significant_as_often_as_alpha_says() -> None:
    alarms = np.mean([evidence.p < ALPHA for evidence in simulate(1, 0.0)])
    assert alarms == pytest.approx(ALPHA, abs=0.005)


def test_the_interval_holds_the_true_ratio_in_95_percent_of_runs() -> None:
    held = [evidence.ratio_lo <= 1.02 <= evidence.ratio_hi for evidence in simulate(2, 0.02)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.01)


def test_the_detectable_change_is_found_in_about_95_percent_of_runs() -> None:
    least = float(np.expm1(detectable_difference(0.005 * np.sqrt(2 / 6), 5, ALPHA)))
    found = np.mean([evidence.p < ALPHA for evidence in simulate(3, least)])
    assert found == pytest.approx(0.95, abs=0.012)


def test_holm_keeps_the_false_alarms_of_a_whole_report_at_alpha() -> None:
    p_values = [evidence.p for evidence in simulate(4, 0.0)]
    reports = [p_values[start : start + 20] for start in range(0, RUNS, 20)]
    alarms = np.mean([min(holm(report)) < 0.1 for report in reports])
    assert alarms <= 0.15


def test_sessions_with_luck_of_their_own_alarm_no_more_often_than_alpha() -> None:
    rng = np.random.default_rng(5)
    luck = rng.normal(0.0, 0.03, (RUNS, 5, 1))
    workers = (luck + rng.normal(0.0, 0.01, (RUNS, 5, 4))).tolist()
    with_sessions = np.mean([welch_t_of_sessions(w[:4], w[4]).p < ALPHA for w in workers])
    pooled = np.mean(
        [
            unpaired_evidence(
                [np.exp(np.ravel(w[:4])).tolist()], np.exp(w[4]).tolist(), alpha=ALPHA
            ).p
            < ALPHA
            for w in workers
        ]
    )
    assert with_sessions == pytest.approx(ALPHA, abs=0.005)
    assert pooled > 5 * ALPHA  # what ignoring the sessions would cost


def test_the_pairs_needed_are_the_least_that_detect() -> None:
    for spread, difference in ((0.01, 0.05), (0.05, 0.05), (0.02, 0.01)):
        needed = pairs_needed(spread, difference, ALPHA)
        assert needed is not None
        least = [
            detectable_difference(spread / np.sqrt(n), n - 1, ALPHA) for n in (needed - 1, needed)
        ]
        assert least[1] <= difference < least[0]
    assert pairs_needed(1.0, 0.001, ALPHA) is None


def test_pairs_are_told_up_to_ten_thousand() -> None:
    needed = pairs_needed(1.0, 0.0445, ALPHA)
    assert needed is not None
    assert 8_192 < needed <= 10_000
    assert pairs_needed(1.0, 0.042, ALPHA) is None
