"""Decisions a second, simulated: rounds where they are expected to decide most, and rounds in turn.

    PYTHONPATH=. python benchmarks/allocation.py [--sessions N]

What is undecided, what is out of reach and which case is next say the functions that sessions call
(``CaseNeeds``). Only the workers and the clock are simulated. Eight cases of four files differ in
their spread, their change and what a round costs. Both ways go on from the same least rounds.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random

from perfci.measure.progress import CaseNeeds, CaseState
from perfci.model.case import Case
from perfci.model.measuring import MeasureSettings, WorkerOutput
from perfci.verdict.policy import default_policy
from perfci.verdict.stopping import rounds_of_ancestor, undecided_metrics

SPREADS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2)
CHANGES = (0.0, 0.0, 0.0, 0.10)
ROUNDS_S = (0.7, 3.0)
ANCESTOR_S = 1.5
BUDGETS_S = (15, 30, 60, 120, 240)
METRIC = "latency_p50"


@dataclass(slots=True)
class Simulated:
    """One session: its cases, the time that is left, and how many ancestors there were."""

    rng: Random
    left_s: float
    needs: CaseNeeds = field(default_factory=lambda: CaseNeeds(MeasureSettings(), default_policy()))
    states: list[CaseState] = field(default_factory=list)
    truth: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    ancestors: int = 0

    def begin(self) -> None:
        """Draw the cases, and give each its least rounds, which are not counted."""
        spreads = self.rng.sample(SPREADS, len(SPREADS))
        for number, spread in enumerate(spreads):
            case = Case(f"case{number}", f"case{number}", {}, f"bench_{number // 2}.py", 1, "")
            state = CaseState(case, case.id, {"base": [], "head": []})
            self.states.append(state)
            drawn = self.rng.choice(CHANGES), self.rng.choice(ROUNDS_S)
            self.truth[case.id] = (spread, *drawn)
            while state.rounds < self.needs.minimum_rounds(state):
                self.ancestors += 1
                self.round(state)

    def round(self, state: CaseState) -> float:
        """Measure one round of a case; return what it took in s."""
        spread, change, round_s = self.truth[state.case.id]
        state.rounds += 1
        ratio = math.log1p(change) + self.rng.gauss(0.0, spread)
        for side, log in (("base", 0.0), ("head", ratio)):
            values = {METRIC: 0.01 * math.exp(log)}
            output = WorkerOutput(state.case.id, side, state.rounds, values, 100)
            state.outputs[side].append(replace(output, ancestor=self.ancestors))
        state.wall_s += round_s
        return round_s

    def undecided(self) -> list[CaseState]:
        """Return the cases that aren't decided, within reach or not."""
        policy, family = self.needs.policy, len(self.states)
        return [
            state
            for state in self.states
            if undecided_metrics(state.compared(policy), policy, family)
        ]

    def chosen(self, *, in_turn: bool) -> list[CaseState]:
        """Return the cases of the next sweep."""
        family, most = len(self.states), self.needs.settings.max_rounds
        if in_turn:
            return [state for state in self.undecided() if state.rounds < most]
        wanting = [s for s in self.states if self.needs.wants_more(s, family, self.left_s)]
        if not wanting:
            return []
        return self.needs.next_of(wanting, family, start_s=ANCESTOR_S, left_s=self.left_s)

    def sweep(self, chosen: Iterable[CaseState]) -> None:
        """Give each its rounds of an ancestor of its file, as long as there is time."""
        by_file: dict[str, list[CaseState]] = {}
        for state in chosen:
            by_file.setdefault(state.case.file, []).append(state)
        for group in by_file.values():
            self.left_s -= ANCESTOR_S
            self.ancestors += 1
            for state in group:
                rows = state.compared(self.needs.policy)
                least = self.needs.minimum_rounds(state)
                count = rounds_of_ancestor(rows, (METRIC,), rounds=state.rounds, least=least)
                for _ in range(count):
                    if self.left_s < self.truth[state.case.id][2]:
                        return
                    self.left_s -= self.round(state)
                    if state not in self.undecided():
                        break


def session(seed: int, budget_s: float, *, in_turn: bool) -> tuple[int, float]:
    """Return how many of the undecided cases were decided within the budget, and the time spent."""
    one = Simulated(Random(seed), budget_s)
    one.begin()
    before = len(one.undecided())
    while one.left_s > min(ROUNDS_S) and (chosen := one.chosen(in_turn=in_turn)):
        left_s = one.left_s
        one.sweep(chosen)
        if one.left_s > left_s - ANCESTOR_S - min(ROUNDS_S):  # no time for a round of what is left
            break
    return before - len(one.undecided()), budget_s - max(0.0, one.left_s)


def main() -> None:
    """Simulate both ways with the same cases, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    count = parser.parse_args().sessions
    print("| s after the least rounds | where it decides most | in turn | s spent | in turn |")
    print("|--:|--:|--:|--:|--:|")
    for budget_s in BUDGETS_S:
        cells = []
        for in_turn in (False, True):
            found = [session(seed, budget_s, in_turn=in_turn) for seed in range(count)]
            cells.append([sum(column) / count for column in zip(*found, strict=True)])
        (first, spent), (other, spent_in_turn) = cells
        print(
            f"| {budget_s} | {first:.2f} | {other:.2f} | {spent:.0f} | {spent_in_turn:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
