"""Pure: which quiet settings are tried, on which cases, for how many rounds, in what time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.machine.quiet import CorePlan
from perfci.model.calibration import SettingTrial
from perfci.model.case import Case
from perfci.model.settings import Quiet

TRIED = ("malloc", "pin", "threads", "gc", "hash_seed")
"""In the order in which they are tried: what usually matters most comes first."""
_ROUNDS = (4, 10)
_CASES = 3
"""Four rounds of three cases leave 9 degrees of freedom: enough to see a spread double."""


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """The settings to switch off in turn, on these cases; and those left out, with the reason."""

    settings: tuple[str, ...]
    cases: tuple[Case, ...]
    rounds: int
    left_out: tuple[SettingTrial, ...]


def plan_trials(
    cases: Sequence[Case],
    round_s: Mapping[str, float],
    quiet: Quiet,
    cores: CorePlan,
    time_s: float,
) -> TrialPlan:
    """Choose trials for ``time_s``: every setting on all cases, else on fewer, else fewer settings.

    Eager cases of different benchmarks come first: what a setting does to one shows soonest.
    """
    able, left_out = [], []
    for setting in TRIED:
        why = _pointless(setting, quiet, cores)
        if why:
            left_out.append(SettingTrial(setting, "left_out", reason=why))
        else:
            able.append(setting)
    chosen = list(_ordered(cases))
    rounds, most = _ROUNDS

    def takes(count: int) -> float:
        return count * rounds * sum(round_s.get(case.id, math.inf) for case in chosen)

    while len(chosen) > _CASES and takes(len(able)) > time_s:
        chosen.pop()
    while able and takes(len(able)) > time_s:
        why = "no time for it; a larger --budget has"
        left_out.append(SettingTrial(able.pop(), "left_out", reason=why))
    if able and chosen:
        rounds = min(most, math.floor(time_s / (takes(len(able)) / rounds)))
    return TrialPlan(tuple(able), tuple(chosen), rounds, tuple(left_out))


def switched_off(quiet: Quiet, setting: str) -> Quiet:
    """Return ``quiet`` without one of ``TRIED``."""
    return replace(quiet, **{setting: False})


def _pointless(setting: str, quiet: Quiet, cores: CorePlan) -> str:
    if not getattr(quiet, setting):
        return "off in the configuration"
    if setting == "pin" and not cores.parent:
        return "workers have every core anyway"
    return ""


def _ordered(cases: Sequence[Case]) -> Sequence[Case]:
    nth: dict[str, int] = {}
    ranked = []
    for index, case in enumerate(cases):
        nth[case.benchmark] = nth.get(case.benchmark, 0) + 1
        ranked.append(((case.compiled, nth[case.benchmark], index), case))
    return [case for _, case in sorted(ranked, key=lambda one: one[0])]
