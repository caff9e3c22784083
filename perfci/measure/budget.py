"""The cases that a session's budget is enough for: the time that they need, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from perfci.measure.progress import CaseNeeds, CaseState, Shortage, TimeLeft
from perfci.measure.selection import visiting_order
from perfci.model.measuring import AGREEING_ROUNDS
from perfci.model.report import Comparison
from perfci.units import counted, first_of, format_duration
from perfci.verdict.caveats import draws, rounds_to_believe
from perfci.verdict.policy import worsening
from perfci.verdict.stopping import is_out_of_reach, rounds_to_decide, undecided_metrics

_SURE = 0.9
"""Share of the time left that cases must fit into to be begun. Estimates aren't exact."""


def by_priority(
    states: Sequence[CaseState], changed: Mapping[str, int], rng: Random
) -> list[CaseState]:
    """Return the cases in the order in which a short budget measures them.

    Those that reach most ``changed`` lines come first, then those that import a changed file (0),
    then the others, which ``changed`` lacks. Equal ones are in an order drawn from ``rng``.
    """
    return sorted(visiting_order(states, rng), key=lambda state: -changed.get(state.case.id, -1))


@dataclass(slots=True)
class _Total:
    """The time of several cases. Each benchmark file adds the ``start_s`` of a fork server."""

    start_s: float
    seconds: float = 0.0
    files: set[str] = field(default_factory=set)

    def with_case(self, state: CaseState, rounds: int, seconds: float) -> float:
        """Add one more case, and return the whole."""
        if rounds and state.case.file not in self.files:
            self.files.add(state.case.file)
            self.seconds += self.start_s
        self.seconds += seconds
        return self.seconds


class Budget:
    """Decides which cases the time left is enough for. ``order`` is that of ``by_priority``.

    A case's next round takes what its later rounds took. First rounds compile with empty caches, so
    they only say what the first rounds of other cases take. A case without a round takes what the
    others take: for a case that ran no changed file that is one round. ``shortage``
    is set once the time isn't enough for all cases.
    """

    def __init__(self, needs: CaseNeeds, order: Sequence[CaseState]) -> None:
        self.order = order
        self.shortage: Shortage | None = None
        self._needs = needs
        self._more: dict[str, tuple[int, int]] = {}  # by case: rounds so far, and how many more

    def enough_for(self, waiting: list[CaseState], family: int, time: TimeLeft) -> list[CaseState]:
        """Return those of ``waiting`` that have their minimum or will get it in the ``time``."""
        if all(map(self._has_minimum, waiting)):
            return waiting
        unsettled = [state for state in self.order if not (state.failures or state.untouched)]
        enough = self._affordable(unsettled, family, time)
        chosen = [s for s in waiting if s.case.id in enough or self._has_minimum(s)]
        if len(chosen) < len(waiting):
            measured = [s for s in self.order if s.rounds or s.case.id in enough]
            self.shortage = Shortage(
                len(self.order),
                len(measured),
                sum(map(self._needs.minimum_rounds, measured)),
                self._all_s(self.order, family, time),
                self._needs.settings.budget,
            )
        return chosen

    def notes(self, states: list[CaseState], family: int, time: TimeLeft) -> list[str]:
        """Return notes on what is missing because the budget ended the session.

        All cases that were not measured are in one note.
        """
        begun = [state for state in states if state.rounds or state.failures]
        unmeasured = [state.case.id for state in states if not (state.rounds or state.failures)]
        cut = any(
            not state.failures
            and not state.untouched
            and (not self._has_minimum(state) or self._needs.wants_more(state, family, time.left_s))
            for state in begun
        )
        if not begun or not unmeasured:
            return [self._note(states)] if cut or not begun else []
        needed_s = self._all_s(states, family, time)
        given_s = self._needs.settings.budget
        verb = "was" if len(unmeasured) == 1 else "were"
        note = (
            f"{len(unmeasured)} of {counted(len(states), 'case')} {verb} not measured: all need "
            f"about {format_duration(needed_s)}, {format_duration(given_s)} were given. "
            "Cases of changed code come first. Raise --budget, split with --shard, or choose with "
            "-k."
        )
        return [note, self._note(begun)] if cut else [note]

    def _note(self, states: list[CaseState]) -> str:
        """Return a note on cases that are undecided because the budget ended the session."""
        short = [s.case.id for s in states if not (self._has_minimum(s) or s.failures)]
        if not short:
            return "The time budget ended before every case was decided; raise --budget."
        early = f"{first_of(short, 5)} had fewer rounds than the minimum"
        return f"The time budget ended first: {early}. Raise --budget, or choose with -k."

    def _has_minimum(self, state: CaseState) -> bool:
        return state.rounds >= self._needs.minimum_rounds(state)

    def _affordable(self, states: Sequence[CaseState], family: int, time: TimeLeft) -> set[str]:
        """Return the ids of the cases that the ``time`` is enough for.

        Begun cases get their minimum first, those with most
        rounds before the others. Then new cases are begun in the order of ``states``, if there is
        time for them after all rounds that decide the begun ones. No case is begun in the last part
        of the budget (``_SURE``). At least one case is always among the ids.
        """
        if self._all_fit(states, time):
            return {state.case.id for state in states}
        begun = sorted((s for s in states if s.rounds), key=lambda state: -state.rounds)
        affordable: set[str] = set()
        total = _Total(time.start_s)
        for state in begun:
            missing = max(0, self._needs.minimum_rounds(state) - state.rounds)
            total_s = total.with_case(state, missing, missing * _later_s(state))
            if total_s > time.left_s and affordable:
                return affordable
            affordable.add(state.case.id)
        total = _Total(time.start_s)
        needed = zip(states, self._needed(states, family), strict=True)
        for state, (rounds, seconds) in sorted(needed, key=lambda item: not item[0].rounds):
            total_s = total.with_case(state, rounds, seconds)
            if not state.rounds:
                if total_s > time.left_s * _SURE and affordable:
                    break
                affordable.add(state.case.id)
        return affordable

    def _all_fit(self, states: Sequence[CaseState], time: TimeLeft) -> bool:
        """Return whether there is time for all rounds that any case may get.

        That is seen without comparing the cases.
        """
        known = [state for state in states if state.rounds]
        if not known:
            return False
        rounds = [self._needs.maximum_rounds(state) - state.rounds for state in states]
        longest_s = max(max(state.took_s) for state in known)
        return (time.start_s + longest_s) * sum(rounds) <= time.left_s * _SURE

    def _all_s(self, states: Sequence[CaseState], family: int, time: TimeLeft) -> float:
        """Return the least budget with which all ``states`` would be begun."""
        total = _Total(time.start_s)
        for state, (rounds, seconds) in zip(states, self._needed(states, family), strict=True):
            total.with_case(state, rounds, seconds)
        return self._needs.settings.budget - time.left_s + total.seconds / _SURE

    def _needed(self, states: Sequence[CaseState], family: int) -> list[tuple[int, float]]:
        """Return how many rounds each case still needs, and the time that passes in them."""
        known = [state for state in states if state.rounds]
        if not known:
            return [(0, 0.0) for _ in states]
        family = family or self._needs.gating_comparisons(list(known)) * len(states) // len(known)
        first_s = sum(state.took_s[0] for state in known) / len(known)
        later_s = sum(map(_later_s, known)) / len(known)
        others = sum(not state.untouched for state in known) / len(known)
        needed = []
        for state in states:
            rounds = 0 if state.failures or state.untouched else self._rounds(state, family)
            if state.rounds or not rounds:
                needed.append((rounds, rounds * _later_s(state) if rounds else 0.0))
            else:
                needed.append((rounds, first_s + (rounds - 1) * later_s * others))
        return needed

    def _rounds(self, state: CaseState, family: int) -> int:
        """Return how many more rounds the case is likely to get."""
        missing = self._needs.minimum_rounds(state) - state.rounds
        if not state.rounds or len(state.outputs) < 2:
            return max(0, missing)
        if self._more.get(state.case.id, (0, 0))[0] != state.rounds:
            self._more[state.case.id] = (state.rounds, self._to_decide(state, family))
        return max(0, missing, self._more[state.case.id][1])

    def _to_decide(self, state: CaseState, family: int) -> int:
        policy, rounds_left = self._needs.policy, self._needs.maximum_rounds(state) - state.rounds
        compared = state.compared(policy)
        undecided = undecided_metrics(compared, policy, family)
        return max(
            (
                self._rounds_of(row, family, rounds_left)
                for row in compared
                if row.metric in undecided and not is_out_of_reach(row, policy, family, rounds_left)
            ),
            default=0,
        )

    def _rounds_of(self, row: Comparison, family: int, rounds_left: int) -> int:
        """Return the rounds that decide a row, or that make a row without interval believed."""
        policy = self._needs.policy
        if not worsening(row).has_interval and _moves(row):
            return min(rounds_left, rounds_to_believe(family, policy.alpha) - min(draws(row)))
        return rounds_to_decide(row, policy, family, rounds_left) or rounds_left


def _moves(row: Comparison) -> bool:
    """Return whether a row is beyond its threshold so far, believed or not: it may end as moved."""
    worse = worsening(row)
    return row.gate != "info" and abs(worse.change) > worse.threshold


def _later_s(state: CaseState) -> float:
    """Return the time of one more round: the mean of the case's later rounds.

    The first rounds count only if there are no others: they also measure what later ones leave out.
    """
    later = state.took_s[AGREEING_ROUNDS:] or state.took_s[1:] or state.took_s
    return sum(later) / len(later)
