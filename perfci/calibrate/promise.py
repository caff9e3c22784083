"""Pure: the smallest change that a session promises to detect, its test, and what to configure.

A session measures at least its minimum of rounds, and more only for a case that is undecided. So a
change is found in two ways: the minimum of rounds finds it, or it is too large to be taken for no
change and the maximum of rounds finds it.

More rounds are suggested first. A higher threshold is suggested only where more rounds aren't
enough, and always with the reason. Nothing is ever lowered, and nothing is suggested:

- from fewer than five pairs;
- for a metric with two modes: its spread isn't noise that a threshold should hide;
- for a metric that may stay undecided without a cost to the verdict: every session would pay for
  rounds that decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfci.calibrate import DefaultSession, Kept, Promise, PromiseCase, SeenMetric, Suggestion
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.report import Comparison
from perfci.stats.spread import POWER, detectable_difference, pairs_needed
from perfci.units import format_duration, format_share
from perfci.verdict.caveats import rounds_to_believe
from perfci.verdict.policy import Policy

PROMISED_METRIC = "latency_p50"
_LARGEST_PROMISE = 1.0
"""Largest promise (100 %) that is worth injecting."""
_LARGEST_EXPONENT = 690.0
"""Largest exponent that is used. From about 709 on, its exponential isn't a float any more."""
_MOST_ROUNDS = 60
"""Largest number of rounds that is suggested because of a metric's spread."""
_LARGEST_THRESHOLD = 0.5
"""Largest threshold that is suggested. A larger one would find nothing that is worth finding."""
_FEWEST_PAIRS = 5
"""Least number of pairs from which something is suggested."""
_STEPS = ((0.1, 0.005), (0.3, 0.01), (math.inf, 0.05))
"""Shares and steps. A suggested threshold below a share is rounded up to a multiple of its step.
The first such share counts."""


@dataclass(frozen=True, slots=True)
class SessionRounds:
    """The rounds of a session: at least, and at most if a case stays undecided."""

    least: int
    most: int


def detectable(
    spread: float, threshold: float, rounds: SessionRounds, alpha: float, *, prolongs: bool
) -> float:
    """Return the smallest change (a share of base) that a session detects in 95 % of runs.

    Either the least rounds detect it, or the most rounds do in 98 % of runs. For the latter the
    change must lie beyond the threshold by one standard error of the least rounds: then chance
    makes a session stop early for "no change" in under 2 % of runs. ``prolongs`` says whether a
    session adds rounds at all while it is undecided about this metric.
    """
    fewest = max(rounds.least, DECIDING_ROUNDS)
    in_fewest = detectable_in(spread, fewest, alpha)
    if not prolongs or rounds.most <= fewest:
        return in_fewest
    slack = 1.0 - (1.0 - POWER) * 0.4
    in_most = detectable_difference(spread / math.sqrt(rounds.most), rounds.most - 1, alpha, slack)
    beyond = math.log1p(threshold) + spread / math.sqrt(fewest)
    return min(in_fewest, math.expm1(min(max(in_most, beyond), _LARGEST_EXPONENT)))


def detectable_in(spread: float, rounds: int, alpha: float) -> float:
    """Return the smallest change that ``rounds`` rounds detect in 95 % of runs."""
    difference = detectable_difference(spread / math.sqrt(rounds), rounds - 1, alpha)
    return math.expm1(min(difference, _LARGEST_EXPONENT))


def rounds_needed(spread: float, change: float, alpha: float) -> int | None:
    """Return the number of rounds that detect ``change``, or None if it is out of reach."""
    return pairs_needed(spread, math.log1p(change), alpha)


@dataclass(frozen=True, slots=True)
class PromiseCandidate:
    """A case whose promise may be checked. ``round_s`` is what a round of it takes."""

    case: str
    promised: float
    spread_hi: float
    round_s: float


@dataclass(frozen=True, slots=True)
class PromisePlan:
    """The slow-down to inject, and the rounds that each case needs. ``rounds`` is their maximum.

    For the cases ``left_out`` there is no time.
    """

    injected: float
    rounds: int
    needed: Mapping[str, int]
    left_out: tuple[str, ...]


def plan_promise(
    candidates: Sequence[PromiseCandidate],
    alpha: float,
    time_s: float,
    *,
    least: int = 2,
    starting_s: float = 0.0,
) -> PromisePlan | None:
    """Choose the largest promise that can be tested in ``time_s``, and the cases to test it on.

    A promise is tested on the case that it was made for. A case whose rounds don't fit is left out:
    the other cases would find its large slow-down too easily. Then cases with smaller promises are
    added, the cheapest first. ``least`` is the number of rounds that any change needs to be
    believed. ``starting_s`` is the time to start a sweep over the cases. Return None if no case
    fits.
    """
    able = sorted(candidates, key=lambda candidate: candidate.promised, reverse=True)
    for index, binding in enumerate(able):
        if binding.promised > _LARGEST_PROMISE:
            continue
        size = binding.promised
        needed = {
            candidate.case: max(least, count)
            for candidate in able[index:]
            if (count := rounds_needed(candidate.spread_hi, size, alpha)) is not None
        }
        chosen = _fitting(binding, able[index:], needed, time_s, starting_s)
        if chosen:
            taken = {candidate.case: needed[candidate.case] for candidate in chosen}
            left_out = tuple(
                candidate.case for candidate in candidates if candidate.case not in taken
            )
            return PromisePlan(size, max(taken.values()), taken, left_out)
    return None


def _fitting(
    binding: PromiseCandidate,
    able: Sequence[PromiseCandidate],
    needed: Mapping[str, int],
    time_s: float,
    starting_s: float,
) -> list[PromiseCandidate]:
    """Return the binding case, whose promise is injected, and as many others as fit.

    Empty if the binding case itself doesn't fit.
    """
    reachable = [
        candidate for candidate in able if candidate.case in needed and candidate is not binding
    ]
    if binding.case not in needed:
        return []
    if needed[binding.case] * (starting_s + binding.round_s) > time_s:
        return []
    chosen = [binding]
    for candidate in sorted(
        reachable, key=lambda candidate: needed[candidate.case] * candidate.round_s
    ):
        rounds = max(needed[each.case] for each in (*chosen, candidate))
        if rounds * (starting_s + sum(each.round_s for each in (*chosen, candidate))) <= time_s:
            chosen.append(candidate)
    return chosen


def judge_promise(plan: PromisePlan, rows: Mapping[str, Comparison], alpha: float) -> Promise:
    """Return whether the injected slow-down was found wherever the rounds suffice.

    One miss breaks the promise. It was made at the upper bound of the spread, so a true promise is
    missed in far fewer than 5 % of cases. A case counts if it has enough rounds, whatever it found.
    It doesn't count if the slow-down came out larger than asked (its interval lies above): that
    tests nothing.
    """
    cases = tuple(
        _judged(case, count, rows.get(case), alpha, plan.injected)
        for case, count in plan.needed.items()
    )
    counted = [case for case in cases if case.counted]
    found = sum(case.found for case in counted)
    missed = ", ".join(case.case for case in counted if not case.found)
    if not counted:
        enough = [case for case in cases if case.rounds >= case.needed]
        status: Kept = "not_checked"
        reason = (
            "the slow-down came out larger than asked, which is found too easily"
            if enough
            else "no case had the rounds that the promise needs"
        )
    else:
        status = "not_kept" if missed else "kept"
        reason = f"missed in {missed}" if missed else ""
    return Promise(
        status=status,
        metric=PROMISED_METRIC,
        promised=plan.injected,
        injected=plan.injected,
        found=found,
        counted=len(counted),
        cases=cases,
        left_out=plan.left_out,
        reason=reason,
    )


def not_checked(reason: str) -> Promise:
    """Return the promise of a calibration that had nothing to check it with."""
    return Promise("not_checked", PROMISED_METRIC, reason=reason)


def _judged(
    case: str, needed: int, row: Comparison | None, alpha: float, injected: float
) -> PromiseCase:
    if row is None:
        return PromiseCase(case, 0, needed, counted=False, found=False)
    rounds = row.base.workers if row.base else 0
    too_large = row.ratio_lo is not None and row.ratio_lo > 1.0 + injected
    significant = row.p is not None and row.p < alpha and not row.caveat
    return PromiseCase(
        case=case,
        rounds=rounds,
        needed=needed,
        counted=rounds >= needed and not too_large,
        found=significant and row.ratio is not None and row.ratio > 1.0,
        ratio=row.ratio,
        ratio_lo=row.ratio_lo,
        ratio_hi=row.ratio_hi,
    )


def suggest(
    seen: Sequence[SeenMetric],
    session: DefaultSession,
    policy: Policy,
    round_s: float,
    *,
    own: frozenset[tuple[str, str]] = frozenset(),
) -> tuple[Suggestion, ...]:
    """Return what to change so that each metric that may cost the verdict can show its threshold.

    ``round_s`` is the time of a round of all cases. More rounds are suggested only if they fit the
    session's budget. ``own`` are the pairs (benchmark, metric) whose threshold the benchmark sets.
    """
    known = [
        (row, row.spread)
        for row in seen
        if row.gate == "fail"
        and row.spread
        and not row.modes
        and row.threshold > 0.0
        and row.pairs >= _FEWEST_PAIRS
        and policy.undecided(row.metric) == "inconclusive"
    ]
    if not known:
        return ()
    alpha = session.alpha / max(1, session.comparisons)
    fits = math.floor(session.budget_s / round_s) if round_s > 0.0 else _MOST_ROUNDS
    wanted, reason = session.max_rounds, ""
    believed = rounds_to_believe(session.comparisons, session.alpha)
    if session.max_rounds < believed:
        wanted = believed
        reason = (
            f"a change in one of {session.comparisons} comparisons is believed after "
            f"{believed} rounds"
        )
    unshown: list[tuple[SeenMetric, float]] = []
    for row, spread in known:
        needed = rounds_needed(spread, row.threshold, alpha)
        if needed is None or needed > max(wanted, min(_MOST_ROUNDS, fits)):
            unshown.append((row, spread))
        elif needed > wanted:
            wanted = needed
            reason = (
                f"{row.case} {row.metric} needs {needed} rounds to show its threshold of "
                f"{format_share(row.threshold)}"
            )
    reached = max(DECIDING_ROUNDS, min(wanted, fits))
    thresholds = _thresholds(unshown, reached, alpha)
    more = wanted > session.max_rounds
    cost = _cost(round_s, session.max_rounds, wanted)
    return (
        *(
            (Suggestion(("max_rounds",), wanted, session.max_rounds, reason + cost),)
            if more
            else ()
        ),
        *_raised(thresholds, policy, own),
    )


def _thresholds(
    unshown: Sequence[tuple[SeenMetric, float]], rounds: int, alpha: float
) -> dict[tuple[str, str], tuple[float, SeenMetric]]:
    """Return the threshold that each benchmark's metric can show, and the case that sets it."""
    thresholds: dict[tuple[str, str], tuple[float, SeenMetric]] = {}
    for row, spread in unshown:
        threshold = _rounded_up(detectable_in(spread, rounds, alpha))
        place = (row.benchmark, row.metric)
        if place not in thresholds or threshold > thresholds[place][0]:
            thresholds[place] = (threshold, row)
    return thresholds


def _cost(round_s: float, before: int, rounds: int) -> str:
    """Return the text on what the rounds cost in a session that stays undecided to the end."""
    if round_s <= 0.0:
        return ""
    then, now = format_duration(rounds * round_s), format_duration(before * round_s)
    return f"; a session in which every case stays undecided takes {then} then, and not {now}"


def _raised(
    thresholds: dict[tuple[str, str], tuple[float, SeenMetric]],
    policy: Policy,
    own: frozenset[tuple[str, str]],
) -> Iterator[Suggestion]:
    for (benchmark, metric), (value, row) in thresholds.items():
        if value > _LARGEST_THRESHOLD:
            continue
        configured = policy.thresholds.get(benchmark, {}).get(metric)
        yield Suggestion(
            path=("thresholds", benchmark, metric),
            value=value,
            before=row.threshold if (benchmark, metric) in own else configured,
            reason=f"{row.case} sees {format_share(row.spread)} of spread a pair; its threshold "
            f"of {format_share(row.threshold)} can't be shown in the rounds the budget allows",
            where="the benchmark's own thresholds" if (benchmark, metric) in own else "",
        )


def _rounded_up(share: float) -> float:
    step = next(step for limit, step in _STEPS if share < limit)
    return round(math.ceil(share / step - 1e-9) * step, 4)
