"""Which undecided case gets the next rounds, and which gets no more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy, worsening
from perfci.verdict.row_status import adjust
from perfci.verdict.stopping import (
    Candidate,
    chance,
    is_out_of_reach,
    next_cases,
    rounds_to_decide,
    wants_rounds,
    without_extreme_pair,
)
from tests.verdict.workers import case, side

POLICY = Policy()
PLENTY = 1e6


def seen(change: float, spread: float, pairs: int = 6, **more: object) -> Comparison:
    """A row of latency whose log ratio has this mean and about this spread."""
    return replace(of_logs([change + spread * (-1) ** n for n in range(pairs)]), **more)


def of_logs(logs: Sequence[float]) -> Comparison:
    pairs = len(logs)
    head = side("head", "latency_p50", [math.exp(log) for log in logs])
    base = side("base", "latency_p50", [1.0] * pairs)
    (row,) = compare_case(case(), base, head, POLICY, paired=True)
    return row


def test_more_rounds_decide_more_likely() -> None:
    row = seen(0.0, 0.05)
    chances = [chance(row, POLICY, 1, more) for more in (1, 5, 20, 80)]
    assert chances == sorted(chances)
    assert chances[0] < 0.3
    assert chances[-1] > 0.7
    half = rounds_to_decide(row, POLICY, 1, 99)
    assert chance(row, POLICY, 1, half - 1) < 0.5 <= chance(row, POLICY, 1, half)
    assert rounds_to_decide(row, POLICY, 1, half - 1) is None


@pytest.mark.parametrize("two_sided", [True, False])
def test_the_chance_is_how_often_it_comes_to_that(two_sided: bool) -> None:
    policy = replace(POLICY, two_sided=two_sided)
    rng = np.random.default_rng(4)
    chances, decided = [], []
    for _ in range(400):
        logs = rng.normal(rng.uniform(-0.2, 0.2), 0.06, 14).tolist()
        before, after = of_logs(logs[:6]), of_logs(logs)
        chances.append(chance(before, policy, 1, 8))
        worse = worsening(after)
        moved = abs(worse.change) >= worse.threshold and after.p < POLICY.alpha
        decided.append(moved or (worse.is_within if two_sided else worse.is_not_worse))
    assert np.mean(chances) == pytest.approx(np.mean(decided), abs=0.06)


def test_a_spread_that_no_round_can_overcome_is_out_of_reach() -> None:
    assert is_out_of_reach(seen(0.0, 0.2, pairs=12), POLICY, 1, 8)
    assert not is_out_of_reach(seen(0.0, 0.05), POLICY, 1, 14)
    assert is_out_of_reach(seen(0.0, 0.05), POLICY, 1, 0)


@pytest.mark.parametrize("place", range(5))
def test_one_disturbed_pair_of_five_puts_nothing_out_of_reach(place: int) -> None:
    logs = [0.01, -0.01, 0.012, -0.008, 0.0]
    logs[place] += math.log(1.3)
    row, policy = of_logs(logs), replace(POLICY, two_sided=True)
    assert chance(row, policy, 20, 10) < 0.05
    assert not is_out_of_reach(row, policy, 20, 10)
    logs[place - 1] -= math.log(1.7)
    assert is_out_of_reach(of_logs(logs), policy, 20, 10)


def test_rounds_end_where_a_regression_is_excluded_but_for_an_improvement_to_be_believed() -> None:
    search = replace(POLICY, two_sided=True)
    better_or_unchanged = seen(-0.03, 0.03)
    assert not wants_rounds(better_or_unchanged, POLICY, 1)
    assert wants_rounds(better_or_unchanged, search, 1)
    (row,) = adjust([better_or_unchanged], POLICY)
    assert (row.status, row.findings[-1].code) == ("inconclusive", "no-regression")
    assert "a regression of 5 % is excluded" in row.warnings[-1]
    improved = seen(-0.08, 0.02)
    assert wants_rounds(improved, POLICY, 80)
    assert not wants_rounds(seen(-0.08, 0.02, pairs=8), POLICY, 80)
    assert not wants_rounds(seen(-0.04, 0.02), POLICY, 80)


def test_the_most_extreme_pair_is_left_out_of_a_difference_too() -> None:
    row = replace(seen(0.0, 0.2, pairs=6), ratio=None, difference=0.5, se=1.0, df=5.0)
    values = (1.0, 1.1, 0.9, 1.0, 1.1, 9.0)
    row = replace(row, head=replace(row.head, values=values))
    calm = without_extreme_pair(row)
    assert calm.se < 0.05
    assert (calm.difference_lo + calm.difference_hi) / 2 == pytest.approx(0.02)


@pytest.mark.parametrize("values", [(), (1.0, 1.0, 0.0, 1.0, 1.0, 1.0)])
def test_where_pairs_are_not_known_as_ratios_the_row_stays(values: tuple[float, ...]) -> None:
    row = seen(0.0, 0.2, pairs=6)
    row = replace(row, base=replace(row.base, values=values))
    assert without_extreme_pair(row) == row


def test_a_change_that_few_rounds_show_needs_as_many_as_make_it_believed() -> None:
    row = seen(0.2, 0.001, pairs=5)
    assert [chance(row, POLICY, 20, more) for more in (1, 2)] == [0.0, 1.0]


def test_rounds_that_are_too_few_for_an_interval_need_what_they_lack() -> None:
    assert rounds_to_decide(seen(0.0, 0.001, pairs=2), POLICY, 1, 9) == 3


FAST = Candidate("fast", "a.py", 1.0, (2,))
SLOW = Candidate("slow", "a.py", 1.0, (15,))
OTHER = Candidate("other", "b.py", 1.0, (3,))


def test_where_there_is_time_for_all_they_share_a_fork_server() -> None:
    assert next_cases((FAST, SLOW, OTHER), start_s=2.0, left_s=PLENTY) == ("fast", "slow", "other")


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ((FAST, SLOW, OTHER), ("fast",)),
        ((SLOW, OTHER), ("other",)),
        ((SLOW, replace(FAST, needs=(3,)), OTHER), ("fast",)),
        ((FAST, replace(SLOW, needs=(3,))), ("fast", "slow")),
        ((replace(FAST, needs=(8,)), replace(OTHER, round_s=0.1)), ("other",)),
        ((replace(FAST, needs=(4, 4, 4)), OTHER), ("fast",)),
    ],
)
def test_where_there_is_not_the_case_that_decides_most_a_second_comes_first(
    candidates: tuple[Candidate, ...], chosen: tuple[str, ...]
) -> None:
    assert next_cases(candidates, start_s=2.0, left_s=5.0) == chosen
