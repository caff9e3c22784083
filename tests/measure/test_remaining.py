"""The time left: by what each case still needs, what its rounds took, and what comes after them."""

from __future__ import annotations

import pytest

from perfci.measure.budget import RemainingTime
from perfci.measure.progress import CaseNeeds, CaseState, case_states
from perfci.model.case import Case
from perfci.model.measuring import MeasureSettings, WorkerOutput
from perfci.verdict.policy import Policy


def states(*names: str) -> list[CaseState]:
    cases = tuple(Case(name, name, {}, "bench.py", 1, "") for name in names)
    return case_states(cases, ["head"])


CLOSING_S = 0.8


def left(of: list[CaseState], elapsed_s: float, budget_s: float = 1e9) -> float | None:
    needs = CaseNeeds(MeasureSettings(rounds=5), Policy())
    return RemainingTime(needs, looks=True).seconds(of, 0, elapsed_s, budget_s)


def measured(state: CaseState, rounds: int, first_s: float, later_s: float) -> None:
    state.rounds, state.first_round_s = rounds, first_s
    state.wall_s = first_s + (rounds - 1) * later_s
    state.took_s = [first_s, *[later_s] * (rounds - 1)]


def test_a_first_round_that_compiles_says_nothing_of_later_ones() -> None:
    (one,) = of = states("a")
    measured(one, 3, first_s=60.0, later_s=2.0)
    assert left(of, elapsed_s=64.0) == pytest.approx(2 * 2.0 + CLOSING_S)


def test_what_only_the_first_rounds_measure_says_nothing_of_later_ones() -> None:
    (one,) = of = states("a")
    one.rounds, one.first_round_s, one.wall_s = 4, 4.0, 10.0
    one.took_s = [4.0, 4.0, 1.0, 1.0]
    assert left(of, elapsed_s=10.0) == pytest.approx(1 * 1.0 + CLOSING_S)


@pytest.mark.parametrize(("slower", "rounds"), [(1.0, 5), (1.1, 7)])
def test_a_change_that_shows_early_takes_the_rounds_that_make_it_believed(
    slower: float, rounds: int
) -> None:
    cases = (Case("a", "a", {}, "bench.py", 1, "", metrics=("latency_p50",)),)
    (one,) = of = case_states(cases, ["base", "head"])
    measured(one, 3, first_s=1.0, later_s=1.0)
    for side, factor in (("base", 1.0), ("head", slower)):
        one.outputs[side] += [
            WorkerOutput("a", side, number, {"latency_p50": (1 + 1e-4 * number) * factor}, 100)
            for number in (1, 2, 3)
        ]
    remaining = RemainingTime(CaseNeeds(MeasureSettings(rounds=5), Policy()), looks=False)
    to_go = (rounds - 3) * 1.0 + CLOSING_S
    assert remaining.seconds(of, 24, 3.0, 1e9) == pytest.approx(to_go)
