"""Replays: what the rules decide of rounds that were recorded, one after the other.

Nothing is decided here. What a case still needs, when it gets no more, comparing, correcting and
judging are the functions that a session calls. Each case is
replayed by itself, as one of ``SUITE`` cases: the correction is for as many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from perfci.config.keys import MeasureSettings
from perfci.measure.kept_bursts import KeptRound, KeptSession
from perfci.measure.progress import CaseNeeds, CaseState, case_states
from perfci.model.report import Comparison
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from perfci.verdict.shards import scaled_family

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
        iter(rounds),
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
    rounds: Iterator[KeptRound]
    sides: Mapping[str, str]

    def run(self) -> None:
        family = 0
        for kept in self.rounds:
            if self.state.rounds >= self.needs.minimum_rounds(self.state):
                family = family or scaled_family(
                    self.needs.gating_comparisons([self.state]), float(SUITE)
                )
                if not self.needs.wants_more(self.state, family, math.inf):
                    return
            self._add(kept)

    def _add(self, kept: KeptRound) -> None:
        state = self.state
        state.rounds += 1
        state.wall_s += kept.took_s
        state.took_s.append(kept.took_s)
        for side in _SIDES:
            output = kept.workers[self.sides[side]].output
            state.outputs[side].append(replace(output, side=side))
