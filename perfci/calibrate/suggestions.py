"""From what a machine sees to keys of the configuration. Pure.

More rounds come first. A threshold is raised only where rounds can't do it, and always with the
reason. Nothing is ever lowered, and nothing is suggested from fewer than five pairs, or for what
has two modes: there the spread isn't noise that a threshold should swallow. Nor for a metric whose
being undecided costs no verdict: every session would pay for rounds that decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from perfci.calibrate.calibration import DefaultSession, SeenMetric, Suggestion
from perfci.calibrate.promise import detectable_in, rounds_needed
from perfci.model.worker import DECIDING_ROUNDS
from perfci.units import format_duration, format_share
from perfci.verdict.caveats import rounds_to_believe
from perfci.verdict.policy import Policy

_MOST_ROUNDS = 60
_LARGEST = 0.5
"""A threshold above this gates nothing worth gating: better said than written."""
_LEAST_PAIRS = 5
_STEPS = ((0.1, 0.005), (0.3, 0.01), (math.inf, 0.05))


def suggest(
    seen: Sequence[SeenMetric],
    session: DefaultSession,
    policy: Policy,
    round_s: float,
    *,
    own: frozenset[tuple[str, str]] = frozenset(),
) -> tuple[Suggestion, ...]:
    """Return what to change so that each metric that may cost the verdict can show its threshold.

    ``round_s`` is what a round of all cases takes: more rounds are suggested only where they
    fit the session's budget. ``own`` are (benchmark, metric) with a threshold in the benchmark.
    """
    known = [
        (row, row.spread)
        for row in seen
        if row.gate == "fail"
        and row.spread
        and not row.modes
        and row.threshold > 0.0
        and row.pairs >= _LEAST_PAIRS
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
        least = _rounded_up(detectable_in(spread, rounds, alpha))
        place = (row.benchmark, row.metric)
        if place not in thresholds or least > thresholds[place][0]:
            thresholds[place] = (least, row)
    return thresholds


def _cost(round_s: float, before: int, rounds: int) -> str:
    """Return what the rounds cost where every case stays undecided to the end."""
    if round_s <= 0.0:
        return ""
    most, least = format_duration(rounds * round_s), format_duration(before * round_s)
    return f"; a session in which every case stays undecided takes {most} then, and not {least}"


def _raised(
    thresholds: dict[tuple[str, str], tuple[float, SeenMetric]],
    policy: Policy,
    own: frozenset[tuple[str, str]],
) -> Iterator[Suggestion]:
    for (benchmark, metric), (value, row) in thresholds.items():
        if value > _LARGEST:
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
