"""Pure: how long a session still takes, by what each case still needs and what its rounds took."""

from __future__ import annotations

from collections.abc import Sequence

from perfci.model.report import Comparison
from perfci.model.settings import AGREEING_ROUNDS
from perfci.session.needs import Needs
from perfci.session.state import CaseState
from perfci.verdict.allocation import is_out_of_reach, rounds_to_decide
from perfci.verdict.caveats import draws, rounds_to_believe
from perfci.verdict.margin import threshold_of, worse_by
from perfci.verdict.stopping import undecided_metrics

MOST_LOOKED_INTO = 8
_LOOK_ROUNDS = 1.0
"""Looking into a case takes so many of its rounds, beside two starts (benchmarks/time_left.py)."""
_CLOSING_S = 0.8
"""What comes after all rounds and looks: trees are removed, the report is written."""


class Remaining:
    """An estimate, made anew before each round. ``looks``: cases that moved are looked into.

    What a round took holds for the next: but the first, which compiles with empty caches, and is
    the only one to say what other cases' first rounds take. What passes between rounds (imports of
    ancestors) is a share of what passes in them.
    """

    def __init__(self, needs: Needs, *, looks: bool) -> None:
        self._needs = needs
        self._looks = looks
        self._more: dict[str, tuple[int, int]] = {}
        self._began_s = 0.0

    def seconds(
        self, states: Sequence[CaseState], family: int, elapsed_s: float, left_s: float
    ) -> float | None:
        """Return the time to go, in s; None where nothing was measured.

        ``elapsed_s`` and ``left_s`` are of the session and of its budget, which looks don't need.
        """
        known = [state for state in states if state.rounds]
        if not known:
            self._began_s = elapsed_s  # the first ancestor's imports, which come once
            return None
        family = family or self._needs.gating_comparisons(list(known)) * len(states) // len(known)
        first_s = sum(state.first_round_s for state in known) / len(known)
        later_s = sum(map(_later_s, known)) / len(known)
        to_do = 0.0
        for state in states:
            if state.failures or state.same_code:
                continue
            rounds = self._rounds(state, family)
            if state.rounds:
                to_do += rounds * _later_s(state)
            elif rounds:
                to_do += first_s + (rounds - 1) * later_s
        within_s = sum(state.wall_s for state in known)
        between = max(1.0, (elapsed_s - self._began_s) / within_s) if within_s else 1.0
        return max(0.0, min(to_do * between, left_s)) + self._look_s(known) + _CLOSING_S

    def _rounds(self, state: CaseState, family: int) -> int:
        """Return how many rounds more the case is likely to get."""
        least = self._needs.least(state) - state.rounds
        if not state.rounds or len(state.outputs) < 2:
            return max(0, least)
        if self._more.get(state.case.id, (0, 0))[0] != state.rounds:
            self._more[state.case.id] = (state.rounds, self._to_decide(state, family))
        return max(0, least, self._more[state.case.id][1])

    def _to_decide(self, state: CaseState, family: int) -> int:
        policy, most = self._needs.policy, self._needs.most(state) - state.rounds
        compared = state.compared(policy)
        undecided = undecided_metrics(compared, state.case, policy, family)
        return max(
            (
                self._rounds_of(row, family, most)
                for row in compared
                if row.metric in undecided and not is_out_of_reach(row, policy, family, most)
            ),
            default=0,
        )

    def _rounds_of(self, row: Comparison, family: int, most: int) -> int:
        """Return what decides a row; before it has an interval, what makes its change believed."""
        policy = self._needs.policy
        if worse_by(row)[1] is None and _moves(row):
            return min(most, rounds_to_believe(family, policy.alpha) - min(draws(row)))
        return rounds_to_decide(row, policy, family, most) or most

    def _look_s(self, known: Sequence[CaseState]) -> float:
        """Return what looking into the cases takes that seem to move so far."""
        if not self._looks:
            return 0.0
        moving = [
            self._look_of(state)
            for state in known
            if not state.failures and any(map(_moves, state.compared(self._needs.policy)))
        ]
        return sum(moving[:MOST_LOOKED_INTO])

    def _look_of(self, state: CaseState) -> float:
        """Both sides start anew, none forked by an ancestor."""
        starts = (
            side.center or 0.0
            for row in state.compared(self._needs.policy)
            if row.metric == "cold_start"
            for side in (row.base, row.head)
            if side is not None
        )
        return _LOOK_ROUNDS * _later_s(state) + sum(starts)


def _moves(row: Comparison) -> bool:
    """Say whether a row may end as moved: believed or not, it is beyond its threshold so far."""
    change = worse_by(row)[0]
    return row.gate != "info" and change is not None and abs(change) > threshold_of(row)


def _later_s(state: CaseState) -> float:
    """Return what one more round takes: without what only the first ones measure, if known."""
    later = state.took_s[AGREEING_ROUNDS:] or state.took_s[1:] or state.took_s
    return sum(later) / len(later)
