"""What identical sides say, on made-up workers whose spread is known."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from statistics import mean

import pytest

from perfci.calibrate import SessionRounds, calibrate, detectable, detectable_in, most_disturbing
from perfci.stats.evidence import look_confidence
from perfci.stats.t_tests import mean as average
from perfci.stats.t_tests import t_quantile, t_test, variance
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy, Worsening
from perfci.verdict.stopping import is_decided
from tests.verdict.identical import SPREAD, identical, outputs
from tests.verdict.workers import case

ROUNDS = SessionRounds(5, 20)


def test_a_known_spread_is_found() -> None:
    found = [
        calibrate(identical(seed=seed, rounds=20), Policy(), ROUNDS)[0][0].spread
        for seed in range(30)
    ]
    assert mean(filter(None, found)) == pytest.approx(SPREAD, rel=0.06)


def test_more_comparisons_and_more_spread_see_less() -> None:
    alone = calibrate(identical(), Policy(), ROUNDS)
    many = calibrate([row for n in range(20) for row in identical(f"c{n}")], Policy(), ROUNDS)
    noisy = calibrate(identical(spread=0.03), Policy(), ROUNDS)
    assert (alone[1], many[1]) == (1, 20)
    assert _detectable(alone) < _detectable(many)
    assert _detectable(alone) < _detectable(noisy)


@pytest.mark.parametrize("spread", [0.003, 0.01, 0.02])
def test_a_session_that_stops_when_decided_finds_what_is_called_detectable(spread: float) -> None:
    alpha, threshold, runs = 0.01 / 12, 0.05, 400
    change = detectable(spread, threshold, ROUNDS, alpha, prolongs=True)
    rng = Random(5)
    found = sum(_finds(rng, spread, change, threshold, alpha) for _ in range(runs))
    assert found / runs >= 0.93  # 95 %, and three standard errors of 400 runs
    half = sum(_finds(rng, spread, change / 2, threshold, alpha) for _ in range(runs))
    assert half / runs < 0.93


def _finds(rng: Random, spread: float, change: float, threshold: float, alpha: float) -> bool:
    """One session: log ratios until decided or out of rounds; whether it called a change."""
    logs: list[float] = []
    while True:
        logs.append(rng.gauss(math.log1p(change), spread))
        count = len(logs)
        if count < ROUNDS.least:
            continue
        se = math.sqrt(variance(logs) / count)
        test = t_test(average(logs), se, count - 1, confidence=look_confidence(5, 20))
        worse = Worsening(test.estimate, test.lo, test.hi, math.log1p(threshold))
        decided = is_decided(worse, test.p, alpha)
        if decided or count == ROUNDS.most:
            return average(logs) / se > t_quantile(1.0 - alpha / 2, count - 1)


def test_without_rounds_for_doubt_only_the_least_rounds_count() -> None:
    assert detectable(0.02, 0.05, ROUNDS, 0.001, prolongs=False) == detectable_in(0.02, 5, 0.001)
    assert detectable(0.02, 0.05, ROUNDS, 0.001, prolongs=True) < detectable_in(0.02, 5, 0.001)


def test_identical_sides_give_no_false_alarm_and_different_ones_do() -> None:
    calm = calibrate(
        [row for n in range(10) for row in identical(f"c{n}", seed=n)], Policy(), ROUNDS
    )
    assert len(calm[0]) == 10
    assert not any(row.false_alarm for row in calm[0])
    shifted = [row for n in range(10) for row in identical(f"c{n}", seed=n, slow_down=0.2)]
    odd = calibrate(shifted, Policy(), ROUNDS)
    assert all(row.false_alarm for row in odd[0])


def test_too_few_pairs_promise_nothing_and_say_so() -> None:
    row = calibrate(identical(rounds=2), Policy(), ROUNDS)[0][0]
    assert row.detectable is None
    assert "fewer than 3 pairs" in row.warning


def test_the_same_value_in_every_pair_promises_nothing() -> None:
    name = "encoder[batch=1]"
    sides = (outputs(name, side, [1.0] * 6) for side in ("base", "head"))
    same = compare_case(case(), *sides, Policy(), paired=True)
    row = calibrate(same, Policy(), ROUNDS)[0][0]
    assert (row.spread, row.detectable) == (0.0, None)


def _detectable(found: object) -> float:
    return found[0][0].detectable  # type: ignore[index]


def test_rounds_are_read_as_comparisons_read_them_by_bursts_side_by_side() -> None:
    rng = Random(1)
    base, head = (
        outputs("encoder", side, [math.exp(rng.gauss(0.0, 0.2)) for _ in range(8)])
        for side in ("base", "head")
    )
    spreads = []
    for beside in ({}, {"latency_p50": 0.0}):
        sides = ([replace(one, beside=beside) for one in side] for side in (base, head))
        rows = compare_case(case("encoder"), *sides, Policy(), paired=True)
        spreads.append(calibrate(rows, Policy(), ROUNDS)[0][0].spread)
    assert spreads[0] > 0.1
    assert spreads[1] == 0.0


def test_what_disturbed_most_bursts_is_named_with_how_many() -> None:
    made = outputs("encoder", "base", [1.0] * 3)
    busy = (replace(one, bursts_measured=10) for one in made)
    first, second, third = busy
    most = most_disturbing(
        (
            replace(first, bursts_set_aside=3, disturbance="a"),
            replace(second, bursts_disturbed=7, disturbance="b"),
            third,
        )
    )
    assert most == "b, in 7 of 30 bursts"
    assert most_disturbing(made) == ""
