"""Suggestions: rounds before thresholds, never less than there was, nothing where it is fine."""

from __future__ import annotations

from dataclasses import replace

from perfci.calibrate import DefaultSession, SeenMetric
from perfci.calibrate.promise import suggest
from perfci.stats.spread import Modes
from perfci.verdict.policy import default_policy

SESSION = DefaultSession(rounds=5, max_rounds=20, budget_s=600.0, alpha=0.01, comparisons=12)
ROW = SeenMetric(
    case="encoder[batch=1]", benchmark="encoder", metric="latency_p50", unit="s", gate="fail",
    threshold=0.05, pairs=10, spread=0.01,
)  # fmt: skip


def _suggested(*rows: SeenMetric, round_s: float = 5.0, **more: object) -> dict[str, float]:
    found = suggest(rows, SESSION, default_policy(), round_s, **more)
    assert all(one.reason for one in found)
    return {".".join(one.path): one.value for one in found}


def test_a_threshold_that_can_be_seen_needs_nothing() -> None:
    assert _suggested(ROW) == {}


def test_more_rounds_come_before_a_larger_threshold() -> None:
    found = _suggested(replace(ROW, spread=0.045))
    assert set(found) == {"max_rounds"}
    assert 20 < found["max_rounds"] <= 60


def test_rounds_that_do_not_fit_the_budget_are_not_suggested() -> None:
    found = _suggested(replace(ROW, spread=0.045), round_s=29.0)
    assert set(found) == {"thresholds.encoder.latency_p50"}
    assert found["thresholds.encoder.latency_p50"] > 0.05


def test_the_noisiest_case_of_a_benchmark_sets_its_threshold_and_no_other_is_loosened() -> None:
    noisy = replace(ROW, case="encoder[batch=2]", spread=0.12)
    noisier = replace(ROW, case="encoder[batch=4]", spread=0.15)
    calm = replace(ROW, case="decoder", benchmark="decoder")
    found = _suggested(noisy, noisier, calm)
    alone = _suggested(noisier)
    assert found == alone
    assert set(found) == {"thresholds.encoder.latency_p50"}


def test_nothing_is_suggested_for_a_metric_whose_doubt_costs_no_verdict() -> None:
    row = replace(ROW, metric="cold_start", threshold=0.10, spread=0.03)
    assert _suggested(row) == {}
    assert _suggested(replace(row, spread=0.3)) == {}
    policy = default_policy()
    strict = replace(policy.metrics["cold_start"], undecided="inconclusive")
    policy = replace(policy, metrics={**policy.metrics, "cold_start": strict})
    (found,) = suggest([replace(row, spread=0.09)], SESSION, policy, 5.0)
    assert found.path == ("max_rounds",)


def test_more_rounds_say_what_they_cost_a_session() -> None:
    (found,) = suggest([replace(ROW, spread=0.045)], SESSION, default_policy(), 5.0)
    assert "every case stays undecided takes 2 min " in found.reason
    assert found.reason.endswith("and not 1 min 40 s")


def test_no_threshold_swallows_two_modes_or_rests_on_few_pairs() -> None:
    noisy = replace(ROW, spread=0.12)
    assert _suggested(replace(noisy, modes=Modes(1.0, 1.3, 0.5))) == {}
    assert _suggested(replace(noisy, pairs=4)) == {}


def test_a_threshold_beyond_half_is_not_written() -> None:
    assert _suggested(replace(ROW, spread=0.9)) == {}


def test_a_threshold_of_the_benchmark_itself_is_named_not_written() -> None:
    row = replace(ROW, spread=0.15)
    own = frozenset({("encoder", "latency_p50")})
    (found,) = suggest([row], SESSION, default_policy(), 5.0, own=own)
    assert "own" in found.where
    assert found.before == 0.05


def test_enough_rounds_for_a_change_to_be_believed() -> None:
    session = replace(SESSION, max_rounds=5)
    (found,) = suggest([ROW], session, default_policy(), 5.0)
    assert found.path == ("max_rounds",)
    assert found.value > 5


def test_nothing_at_all_is_suggested_where_no_case_has_five_pairs() -> None:
    session = replace(SESSION, max_rounds=5)
    for rows in ((), (replace(ROW, pairs=4),), (replace(ROW, modes=Modes(1.0, 1.3, 0.5)),)):
        assert suggest(rows, session, default_policy(), 5.0) == ()


def test_the_order_of_the_cases_makes_no_difference() -> None:
    noisy = replace(ROW, case="noisy", benchmark="noisy", spread=0.15)
    middling = replace(ROW, case="middling", benchmark="middling", spread=0.045)
    assert _suggested(noisy, middling) == _suggested(middling, noisy)
