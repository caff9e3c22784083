"""Welch's t test: two independent groups of workers, with or without several sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from perfci.model.finding import found
from perfci.stats.paired import without_spread
from perfci.stats.student import EXACT, Resolution, TTest, mean, no_evidence, t_test, variance


def welch_t(
    base: Sequence[float], head: Sequence[float], *, resolution: Resolution = EXACT
) -> TTest:
    """Test ``mean(head) - mean(base)`` against zero, the two spreads being unequal.

    Notes
    -----
    ``SE² = s_b²/n_b + s_h²/n_h`` with Welch-Satterthwaite degrees of freedom
    ``SE⁴ / Σ (s²/n)² / (n - 1)`` (Welch 1947, Biometrika 34:28-35; Satterthwaite 1946,
    Biometrics Bulletin 2:110-114), taken from each side's share of ``SE²``: its own square may be
    more, or less, than a float holds. Assumes all values independent: workers, never iterations.
    A side without any spread is no evidence: its variance is not known.
    """
    problem = _problem(base, head)
    if problem is not None:
        return problem
    estimate = mean(head) - mean(base)
    base_part = variance(base, resolution) / len(base)
    head_part = variance(head, resolution) / len(head)
    if base_part == 0.0 or head_part == 0.0:
        if base_part + head_part == 0.0:
            return without_spread(estimate, resolution)
        return TTest(estimate, warnings=(found("no-spread-on-one-side"),))
    whole = base_part + head_part
    share = base_part / whole
    df = 1.0 / (share**2 / (len(base) - 1) + (1.0 - share) ** 2 / (len(head) - 1))
    return t_test(estimate, math.sqrt(whole), df)


def welch_t_of_sessions(
    base_sessions: Sequence[Sequence[float]],
    head: Sequence[float],
    *,
    resolution: Resolution = EXACT,
) -> TTest:
    """Test head, one new session, against the mean of base's sessions.

    Notes
    -----
    Random effects, one level: a session's mean is the true value plus the session's own effect
    (Searle, Casella & McCulloch 1992, Variance Components, 3.2). With ``k`` sessions of ``n``
    workers whose means have the variance ``S²``, head's session mean differs from base's mean
    with ``SE² = S² (1 + 1/k)``, the interval for one more observation, and ``df = k - 1``;
    exact where head has ``n`` workers too. Fewer workers on head add
    ``s_w² (1/n_head - 1/n)`` with the pooled spread within sessions, and no degrees of freedom:
    with Satterthwaite's, the intervals of two sessions held in 88 % of simulated runs. One
    session says nothing of the variance between sessions: Welch's t then, and a warning. A
    separate estimate of that variance, truncated at zero, was rejected: with two or three
    sessions it is often zero, and the test then raises false alarms.
    """
    sessions = [session for session in base_sessions if session]
    if len(sessions) < 2:
        base = sessions[0] if sessions else ()
        test = welch_t(base, head, resolution=resolution)
        return replace(test, warnings=(*test.warnings, found("one-session-of-spread")))
    problem = _problem([value for session in sessions for value in session], head)
    if problem is not None:
        return problem
    count = len(sessions)
    means = [mean(session) for session in sessions]
    estimate = mean(head) - mean(means)
    between = variance(means, resolution) * (1.0 + 1.0 / count)
    groups = [group for group in (*sessions, head) if len(group) > 1]
    within_df = sum(len(group) - 1 for group in groups)
    pooled = sum((len(g) - 1) * variance(g, resolution) for g in groups) / within_df
    fewer = 1.0 / len(head) - mean([1.0 / len(session) for session in sessions])
    within = max(0.0, fewer) * pooled
    if between == 0.0:
        return without_spread(estimate, resolution)
    return t_test(estimate, math.sqrt(between + within), count - 1)


def _problem(base: Sequence[float], head: Sequence[float]) -> TTest | None:
    if not base or not head:
        return TTest(None, warnings=(found("no-values-on-one-side"),))
    if problem := no_evidence((*base, *head)):
        return TTest(None, warnings=(problem,))
    if min(len(base), len(head)) < 2:
        return TTest(
            mean(head) - mean(base),
            warnings=(found("one-value-on-one-side"),),
        )
    return None
