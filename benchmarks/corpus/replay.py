"""Replays: what the rules decide of rounds that were recorded, one after the other.

Nothing is decided here. What a case still needs, when it gets no more, how many rounds an ancestor
gives, comparing, correcting and judging are the functions that a session calls. Each case is
replayed by itself, as one of ``SUITE`` cases: the correction is for as many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfci.config.keys import MeasureSettings
from perfci.measure.kept_bursts import KeptRound, KeptSession
from perfci.measure.progress import CaseNeeds, CaseState, case_states
from perfci.model.report import Comparison
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from perfci.verdict.shards import scaled_family
from perfci.verdict.stopping import rounds_of_ancestor

SUITE = 20
"""Cases of the report that each replayed case is part of."""
_SIDES = ("base", "head")


@dataclass(frozen=True, slots=True)
class Replay:
    """What was decided of one case: its verdict and rows, and what that took."""

    verdict: str
    rows: tuple[Comparison, ...]
    rounds: int
    seconds: float


@dataclass(slots=True)
class _Ancestors:
    """A case's recorded rounds, by ancestor. A rule is given each of them once."""

    rounds: list[list[KeptRound]]
    begun: list[list[KeptRound]] = field(default_factory=list)

    @classmethod
    def of(cls, rounds: Sequence[KeptRound]) -> _Ancestors:
        groups: dict[int, list[KeptRound]] = {}
        for kept in rounds:
            ancestor = kept.workers["head"].output.ancestor
            groups.setdefault(ancestor or -kept.round, []).append(kept)
        return cls(list(groups.values()))

    def next(self) -> list[KeptRound]:
        """Return the rounds of an ancestor that gave none, or what is left of one that did."""
        if self.rounds:
            self.begun.append(self.rounds.pop(0))
        return next((group for group in self.begun[::-1] if group), [])


def replayed(session: KeptSession, case: int, policy: Policy, *, swapped: bool = False) -> Replay:
    """Return what a session that had the recorded rounds to draw from decides of ``case``.

    As many rounds as were recorded are its ``max_rounds``, if that is less than the default.
    ``swapped``: what was measured of base is taken for head's, and the other way round.
    """
    rounds = [kept for kept in session.rounds if kept.case == case]
    settings = MeasureSettings()
    settings = replace(settings, max_rounds=min(settings.max_rounds, len(rounds)))
    policy = replace(policy, looks=(settings.rounds, settings.max_rounds))
    replaying = _Replaying(
        case_states((session.cases[case],), _SIDES)[0],
        CaseNeeds(settings, policy),
        _Ancestors.of(rounds),
        dict(zip(_SIDES, _SIDES[::-1] if swapped else _SIDES, strict=True)),
    )
    replaying.run()
    state = replaying.state
    rows = adjust(state.compared(policy), policy, float(SUITE))
    between_s = session.wall_s - sum(kept.took_s for kept in session.rounds)
    seconds = state.wall_s + state.rounds * between_s / len(session.rounds)
    verdict = decide(rows, (), policy)
    status = "looks slower" if verdict.looks_slower else verdict.status
    return Replay(status, rows, state.rounds, seconds)


@dataclass(slots=True)
class _Replaying:
    """One case's session: the loop of ``perfci.measure.session`` without its processes.

    ``sides`` has for each side whose workers are taken for its own.
    """

    state: CaseState
    needs: CaseNeeds
    ancestors: _Ancestors
    sides: Mapping[str, str]

    def run(self) -> None:
        while self.state.rounds < self.needs.minimum_rounds(self.state):
            group = self.ancestors.next()
            if not group:
                return
            self._add(group.pop(0))
        family = scaled_family(self.needs.gating_comparisons([self.state]), float(SUITE))
        while self._wants_more(family):
            group, count = self.ancestors.next(), self._rounds_of_next()
            if not group:
                return
            for _ in range(min(count, len(group))):
                self._add(group.pop(0))
                if not self._wants_more(family):
                    return

    def _add(self, kept: KeptRound) -> None:
        state = self.state
        state.rounds += 1
        state.wall_s += kept.took_s
        state.took_s.append(kept.took_s)
        for side in _SIDES:
            output = kept.workers[self.sides[side]].output
            state.outputs[side].append(replace(output, side=side))

    def _wants_more(self, family: int) -> bool:
        return self.needs.wants_more(self.state, family, math.inf)

    def _rounds_of_next(self) -> int:
        return rounds_of_ancestor(
            self.state.compared(self.needs.policy),
            self.state.undecided,
            rounds=self.state.rounds,
            least=self.needs.minimum_rounds(self.state),
        )
