"""Student's t: the distribution, and the paired and Welch tests."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from perfci.finding import Finding, finding

CONFIDENCE = 0.95
"""Confidence of an interval by default."""
LARGEST = 1e150
"""Largest magnitude that is computed with. Its inverse is the smallest, apart from 0. A float holds
the squares and ratios of all values between. Only a benchmark's own metric could come near it."""


@dataclass(frozen=True, slots=True)
class TTest:
    """The result of a t test. Without evidence it has nothing but the ``estimate``.

    ``lo`` and ``hi`` bound ``estimate`` with the confidence that was asked for, 95 % by default;
    ``p`` is two-sided against zero.
    """

    estimate: float | None
    se: float | None = None
    df: float | None = None
    p: float | None = None
    lo: float | None = None
    hi: float | None = None
    warnings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolution:
    """The resolution at which values are known, in their own unit.

    A spread up to ``rounding`` is the rounding error of a constant, and counts as 0. An instrument
    that counts in steps of ``step`` (pages, ticks) may show the same value, or the same change,
    every time. To allow for the spread that this hides, no variance is taken as less than
    ``least``.
    """

    rounding: float = 0.0
    step: float = 0.0

    @property
    def least(self) -> float:
        """The variance of a difference of two values that are each rounded to a step.

        Notes
        -----
        ``step² / 12`` for each of the two (Sheppard 1898, Proc. London Math. Soc. 29:353-380).
        """
        return self.step**2 / 6.0


EXACT = Resolution()
"""The resolution of values that are known exactly."""


def t_test(
    estimate: float,
    se: float,
    df: float,
    warnings: tuple[Finding, ...] = (),
    confidence: float = CONFIDENCE,
) -> TTest:
    """Test ``estimate`` with standard error ``se`` against zero.

    Notes
    -----
    ``p = 2 F(-|estimate / se|; df)`` and ``estimate ± t(0.5 + confidence / 2; df) se`` with F the
    distribution function of Student's t (Student 1908, Biometrika 6:1-25). Assumes that the
    estimate is about normal and that ``df se² / σ²`` is about chi-squared with ``df`` degrees of
    freedom.
    """
    half_width = t_quantile(0.5 + confidence / 2, df) * se
    return TTest(
        estimate=estimate,
        se=se,
        df=df,
        p=two_sided_p(estimate / se, df),
        lo=estimate - half_width,
        hi=estimate + half_width,
        warnings=warnings,
    )


def two_sided_p(t: float, df: float) -> float:
    """Return the probability of ``|T| >= |t|`` for Student's t with ``df`` degrees of freedom."""
    from scipy import special

    return float(2.0 * special.stdtr(df, -abs(t)))


@lru_cache(4096)
def t_quantile(probability: float, df: float) -> float:
    """Return the ``probability`` quantile of Student's t with ``df`` degrees of freedom."""
    from scipy import special

    return float(special.stdtrit(df, probability))


def no_evidence(values: Sequence[float]) -> Finding | None:
    """Return why ``values`` can't be computed with, or None."""
    if not all(map(math.isfinite, values)):
        return finding("not-finite")
    if any(value and not 1.0 / LARGEST <= abs(value) <= LARGEST for value in values):
        return finding("out-of-range", largest=LARGEST)
    return None


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; ValueError for no values."""
    if not values:
        raise ValueError("no values")
    return math.fsum(values) / len(values)


def variance(values: Sequence[float], resolution: Resolution = EXACT) -> float:
    """Return the unbiased sample variance, but no less than what ``resolution`` hides.

    Notes
    -----
    ``Σ (x - mean)² / (n - 1)``, in two passes. Needs two values. Without ``resolution``, a
    constant times 1.1 shows a spread of 1e-16, and any change of the constant is "significant".
    """
    center = mean(values)
    spread = math.fsum((value - center) ** 2 for value in values) / (len(values) - 1)
    return max(spread if math.sqrt(spread) > resolution.rounding else 0.0, resolution.least)


def paired_t(
    base: Sequence[float],
    head: Sequence[float],
    *,
    resolution: Resolution = EXACT,
    confidence: float = CONFIDENCE,
) -> TTest:
    """Test the mean of ``head - base``, pair by pair, against zero.

    Notes
    -----
    ``t = mean(d) / (s_d / √n)``, ``df = n - 1`` (Student 1908; Snedecor & Cochran 1989,
    Statistical Methods, 6.3). Assumes that pairs are independent of each other and differences
    about normal. Assumes nothing about the spread that both sides of a pair share. On logarithms
    the difference is a log ratio.
    """
    if len(base) != len(head):
        raise ValueError(f"{len(base)} values on base and {len(head)} on head are not pairs")
    differences = [after - before for before, after in zip(base, head, strict=True)]
    if not differences:
        return TTest(None, warnings=(finding("no-pairs"),))
    count = len(differences)
    estimate = mean(differences)
    if count < 2:
        return TTest(estimate, warnings=(finding("one-pair"),))
    spread = variance(differences, resolution)
    if spread == 0.0:
        return without_spread(estimate, resolution)
    return t_test(estimate, math.sqrt(spread) / math.sqrt(count), count - 1, confidence=confidence)


def without_spread(estimate: float, resolution: Resolution) -> TTest:
    """Return the test of values without any spread: no evidence of a change, even if they differ.

    Sides that agree to the last digit bound the change at zero. Sides that differ by a constant
    bound nothing: a clock or a counter may be stuck.
    """
    if abs(estimate) <= resolution.rounding:
        return TTest(0.0, lo=0.0, hi=0.0, warnings=(finding("same-values"),))
    return TTest(estimate, warnings=(finding("no-spread"),))


def sign_flip_p(differences: Sequence[int]) -> float:
    """Return the chance that a sum of paired differences of counts is at least this large.

    Notes
    -----
    The exact randomisation test of pairs (Fisher 1935, The Design of Experiments, 21): where the
    sides are alike, swapping them within a round is as likely, so each difference has either sign
    with probability 1/2, independently of the others. The distribution of the sum is convolved
    difference by difference (Pagano & Tritchler 1983, JASA 78:435-440). It assumes nothing about
    the counts within a round, which another program on the machine may make large together. Tests
    that take counts as independent (Fisher's exact test, a binomial) do. With n differences other
    than 0, p is at least 2^-n: 0.031 with five.
    """
    sums = {0: 1.0}
    for difference in differences:
        flipped: defaultdict[int, float] = defaultdict(float)
        for total, chance in sums.items():
            flipped[total + difference] += chance / 2
            flipped[total - difference] += chance / 2
        sums = flipped
    seen = sum(differences)
    return math.fsum(chance for total, chance in sums.items() if total >= seen)


def welch_t(
    base: Sequence[float], head: Sequence[float], *, resolution: Resolution = EXACT
) -> TTest:
    """Test ``mean(head) - mean(base)`` against zero, the two spreads being unequal.

    Notes
    -----
    ``SE² = s_b²/n_b + s_h²/n_h`` with Welch-Satterthwaite degrees of freedom
    ``SE⁴ / Σ (s²/n)² / (n - 1)`` (Welch 1947, Biometrika 34:28-35; Satterthwaite 1946,
    Biometrics Bulletin 2:110-114), computed from each side's share of ``SE²``, because its square
    could over- or underflow. Assumes all values independent: workers, never iterations.
    The variance of a side without any spread is not known.
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
        return TTest(estimate, warnings=(finding("no-spread-on-one-side"),))
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
    with ``SE² = S² (1 + 1/k)``, the interval for one more observation, and ``df = k - 1``. This is
    exact if head has ``n`` workers too. Fewer workers on head add
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
        return replace(test, warnings=(*test.warnings, finding("one-session-of-spread")))
    problem = _problem([value for session in sessions for value in session], head)
    if problem is not None and problem.estimate is None:
        return problem
    count = len(sessions)
    means = [mean(session) for session in sessions]
    estimate = mean(head) - mean(means)
    if problem is not None:
        return replace(problem, estimate=estimate)
    between = variance(means, resolution) * (1.0 + 1.0 / count)
    groups = [group for group in (*sessions, head) if len(group) > 1]
    within_df = sum(len(group) - 1 for group in groups)
    pooled = sum((len(g) - 1) * variance(g, resolution) for g in groups) / within_df
    fewer = 1.0 / len(head) - mean([1.0 / len(session) for session in sessions])
    within = max(0.0, fewer) * pooled
    if between == 0.0:
        return without_spread(estimate, resolution)
    return t_test(estimate, math.sqrt(between + within), count - 1)


@dataclass(frozen=True, slots=True)
class DayShift:
    """How far base's values of today lie from the stored ones, in several cases, the anchors.

    ``mean`` and ``variance`` are those of the anchors' shifts, on the scale of the test. A positive
    mean says that the machine is slower today. ``of_workers`` is the part of the variance that the
    anchors' own workers explain.
    """

    mean: float
    variance: float
    of_workers: float
    anchors: int


def welch_t_of_day(
    base_sessions: Sequence[Sequence[float]],
    head: Sequence[float],
    day: DayShift,
    *,
    resolution: Resolution = EXACT,
) -> TTest:
    """Test head, measured today, against the mean of base's sessions as they would be today.

    ``base_sessions`` are shifted by the mean of ``day``, which is how sure that shift is.

    Notes
    -----
    The case's own shift isn't known. With k anchors whose shifts have the variance ``S²``, it is
    predicted with ``S² (1 + 1/k)`` and ``k - 1`` degrees of freedom, the interval for one more
    observation (Searle, Casella & McCulloch 1992, Variance Components, 3.2). That is exact if the
    workers of this case spread as those of the anchors do. If they spread more, the excess of their
    Welch's ``s²/n`` is added, with no degrees of freedom. Cases may also share their luck, as those
    do that start from the same imports: then all anchors are one observation. So the variance is at
    least the sum of what the workers of the case and those of an anchor explain.
    """
    sessions = [session for session in base_sessions if session]
    problem = _problem([value for session in sessions for value in session], head)
    if problem is not None:
        return problem
    estimate = mean(head) - mean([mean(session) for session in sessions])
    own = variance_of_means(sessions, resolution) + variance_of_means([head], resolution)
    predicted = day.variance * (1.0 + 1.0 / day.anchors) + max(0.0, own - day.of_workers)
    total = max(predicted, own + day.of_workers)
    if total == 0.0:
        return without_spread(estimate, resolution)
    return t_test(estimate, math.sqrt(total), day.anchors - 1)


def variance_of_means(sessions: Sequence[Sequence[float]], resolution: Resolution = EXACT) -> float:
    """Return the variance of the mean of sessions' means that their own values explain."""
    known = [variance(each, resolution) / len(each) for each in sessions if len(each) > 1]
    return mean(known) / len(sessions) if known else 0.0


def _problem(base: Sequence[float], head: Sequence[float]) -> TTest | None:
    if not base or not head:
        return TTest(None, warnings=(finding("no-values-on-one-side"),))
    if min(len(base), len(head)) < 2:
        return TTest(mean(head) - mean(base), warnings=(finding("one-value-on-one-side"),))
    return None
