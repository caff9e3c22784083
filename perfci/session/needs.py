"""What each case still needs, which gets the next rounds, and what none got in the end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from perfci.model.settings import AGREEING_ROUNDS, DECIDING_ROUNDS, MeasureSettings
from perfci.session.schedule import least_rounds
from perfci.session.state import CaseState
from perfci.units import first_of
from perfci.verdict.allocation import Candidate, is_out_of_reach, next_cases, rounds_to_decide
from perfci.verdict.policy import Policy
from perfci.verdict.stopping import undecided_metrics

EXACT_PARTS = frozenset({"accuracy_loss", "differing_ranks", "memory_growth"})
"""Metrics that cost calls of their own and say the same in each round."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of cases under these settings and this policy. Times in s."""

    settings: MeasureSettings
    policy: Policy

    def least(self, state: CaseState) -> int:
        """Return how many rounds the case has in any event."""
        settings = self.settings
        return least_rounds(settings.rounds, settings.compile_rounds, compiled=state.compiled)

    def exact_parts(self, state: CaseState) -> frozenset[str]:
        """Return which of ``EXACT_PARTS`` the next round measures.

        Where the workers of the first rounds agree there is nothing left to know. A side alone is
        compared another day, with workers that nobody knows: it has as many as decide.
        """
        if state.rounds >= DECIDING_ROUNDS:
            return frozenset()
        if state.rounds < AGREEING_ROUNDS or len(state.outputs) < 2:
            return EXACT_PARTS
        open_rows = (row for row in state.compared(self.policy) if row.method != "exact")
        return EXACT_PARTS & {row.metric for row in open_rows}

    def wants_more(self, state: CaseState, family: int, left_s: float) -> bool:
        """Say whether rounds that there is time for may decide more; the state notes of what."""
        if state.same_code or state.failures or state.rounds >= self.most(state):
            return False
        compared = state.compared(self.policy)
        undecided = undecided_metrics(compared, state.case, self.policy, family)
        state.out_of_reach = self._out_of_reach(state, undecided, family, left_s)
        state.undecided = tuple(one for one in undecided if one not in state.out_of_reach)
        return bool(state.undecided)

    def most(self, state: CaseState) -> int:
        """Return how many rounds the case has at most."""
        return max(self.settings.max_rounds, self.least(state))

    def _out_of_reach(
        self, state: CaseState, undecided: Collection[str], family: int, left_s: float
    ) -> tuple[str, ...]:
        """Return the metrics that no round which there is still time for could decide."""
        most = self.most(state) - state.rounds
        if state.rounds:
            most = int(min(most, left_s * state.rounds / max(state.wall_s, 1e-9)))
        return tuple(
            row.metric
            for row in state.compared(self.policy)
            if row.metric in undecided and is_out_of_reach(row, self.policy, family, most)
        )

    def gating_comparisons(self, states: list[CaseState]) -> int:
        """Return how many there are so far that Holm will correct for."""
        return sum(
            comparison.gate == "fail" and comparison.method == "paired_t"
            for state in states
            for comparison in state.compared(self.policy)
        )

    def next_of(
        self, undecided: list[CaseState], family: int, *, start_s: float, left_s: float
    ) -> list[CaseState]:
        """Return those that the next rounds help most; ``start_s`` is what an ancestor costs."""
        candidates = [
            Candidate(
                state.case.id,
                state.case.file,
                state.wall_s / state.rounds,
                tuple(
                    rounds_to_decide(row, self.policy, family, most) or most
                    for row in state.compared(self.policy)
                    if row.metric in state.undecided
                ),
            )
            for state in undecided
            if (most := self.most(state) - state.rounds)
        ]
        names = next_cases(candidates, start_s=start_s, left_s=left_s)
        return [state for state in undecided if state.case.id in names]

    def out_of_reach_notes(self, states: list[CaseState]) -> list[str]:
        """Name what got no more rounds, as those left would hardly have decided it."""
        stopped = [
            f"{state.case.id} ({', '.join(state.out_of_reach)})"
            for state in states
            if state.out_of_reach and state.rounds < self.most(state)
        ]
        if not stopped:
            return []
        names = first_of(stopped, 5)
        why = "neither --budget nor `max_rounds` leaves the rounds that could decide it"
        return [f"Not measured further, as {why}: {names}."]

    def budget_notes(self, states: list[CaseState]) -> list[str]:
        """Say what a session lacks that its time cut short."""
        short = [s for s in states if s.rounds < self.least(s) and not s.failures]
        if not short:
            return ["The time budget ended before every case was decided; raise --budget."]
        names = first_of([state.case.id for state in short], 5)
        early = f"{names} had fewer rounds than the minimum"
        return [f"The time budget ended first: {early}. Raise --budget, or choose with -k."]
