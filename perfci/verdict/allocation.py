"""Pure: which undecided cases get the next rounds, and which get no more, as none would help."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from perfci.model.report import Comparison
from perfci.model.settings import DECIDING_ANCESTORS, DECIDING_ROUNDS
from perfci.stats.spread import Spread, upper_bound
from perfci.stats.student import t_quantile
from perfci.verdict.caveats import ancestors_differ, draws, rounds_to_believe
from perfci.verdict.margin import is_beyond, is_within, threshold_of, worse_by
from perfci.verdict.policy import Policy

_LIKELY, _HARDLY = 0.5, 0.05
_SPREADS = (0.1, 0.3, 0.5, 0.7, 0.9)
_STEPS = tuple(NormalDist().inv_cdf((2 * i + 1) / 18) for i in range(9))


@dataclass(frozen=True, slots=True)
class Candidate:
    """An undecided case: its benchmark file, what a round of it costs in s, and what it lacks.

    ``needs`` has, for each undecided metric, how many rounds more would decide it.
    """

    case: str
    file: str
    round_s: float
    needs: tuple[int, ...]

    def decisions_a_second(self, start_s: float = 0.0) -> float:
        """Return the best of: decisions with so many rounds ÷ what those cost, and ``start_s``."""
        return max(
            count / (start_s + rounds * self.round_s)
            for count, rounds in enumerate(sorted(self.needs), start=1)
        )


def next_cases(
    candidates: Sequence[Candidate], *, start_s: float, left_s: float
) -> tuple[str, ...]:
    """Return the cases of the next sweep; ``start_s`` is what an ancestor costs.

    All, where all can be decided in the time that is left: they share ancestors, which is cheapest
    for the whole. Else the case that is expected to decide most a second, and those of its file
    that decide as much with its ancestor: a knapsack filled by value for weight (Dantzig 1957,
    Operations Research 5:266-288).
    """
    files = {one.file for one in candidates}
    rounds_s = sum(max(one.needs) * one.round_s for one in candidates)
    sweeps = sum(max(max(o.needs) for o in candidates if o.file == file) for file in files)
    if rounds_s + sweeps * start_s <= left_s:
        return tuple(one.case for one in candidates)
    best = max(candidates, key=lambda one: one.decisions_a_second(start_s))
    least = best.decisions_a_second(start_s)
    return tuple(
        one.case
        for one in candidates
        if one.file == best.file and one.decisions_a_second() >= least
    )


def rounds_to_decide(row: Comparison, policy: Policy, family: int, most: int) -> int | None:
    """Return how many rounds more decide a ``row`` as likely as not, or None for over ``most``."""
    return next(
        (more for more in range(1, most + 1) if chance(row, policy, family, more) >= _LIKELY), None
    )


def is_out_of_reach(row: Comparison, policy: Policy, family: int, most: int) -> bool:
    """Say whether even ``most`` rounds more would hardly decide a paired ``row``."""
    return most < 1 or chance(row, policy, family, most) < _HARDLY


def chance(row: Comparison, policy: Policy, family: int, more: int) -> float:
    """Return the chance that a report with ``more`` rounds decides a paired ``row``.

    Notes
    -----
    Predictive power (Spiegelhalter, Freedman & Blackburn 1986, Controlled Clinical Trials 7:8-17):
    with n rounds of the mean m and N in the end, the final mean is ``m + σ √(1/n - 1/N) z``; σ²
    itself is ``df s² / χ²``. Both are taken at quantiles that are alike likely. Of ancestors, not
    of rounds, where those differ. Assumes about normal rounds, and no prior knowledge.
    """
    pairs = row.base.workers if row.base else 0
    drawn = min(draws(row))
    if pairs + more < DECIDING_ROUNDS or drawn + more < DECIDING_ANCESTORS:
        return 0.0
    _, lo, hi = worse_by(row)
    if lo is None or hi is None or not row.se or not row.df:
        return 1.0
    threshold, level = threshold_of(row), policy.alpha / max(1, family)
    beyond = is_beyond(lo, hi, threshold)
    if beyond and drawn + more < rounds_to_believe(family, policy.alpha):
        return 0.0
    count, final = (drawn, drawn + more) if ancestors_differ(row) else (pairs, pairs + more)
    left = math.sqrt(1.0 / count - 1.0 / final)
    sure = t_quantile(0.5 + row.confidence / 2.0, final - 1)
    believed = t_quantile(1.0 - level / 2.0, final - 1)
    decided = 0
    for share in _SPREADS:
        spread = upper_bound(Spread(row.se * math.sqrt(count), int(row.df)), share)
        se = spread / math.sqrt(final)
        for step in _STEPS:
            change = (lo + hi) / 2.0 + spread * left * step
            moved = abs(change) >= max(threshold, believed * se)
            decided += moved or is_within(change - sure * se, change + sure * se, threshold)
    return decided / (len(_SPREADS) * len(_STEPS))
