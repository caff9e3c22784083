"""Statistical evidence of a change in one metric: test, effect size and centre.

Also the corrections for many comparisons and for many looks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from perfci.finding import NO_EVIDENCE, Evidence, finding
from perfci.stats.speeds import TwoSpeeds
from perfci.stats.spread import detectable_difference
from perfci.stats.t_tests import (
    CONFIDENCE,
    EXACT,
    DayShift,
    Resolution,
    TTest,
    mean,
    no_evidence,
    paired_t,
    t_quantile,
    t_test,
    variance,
    welch_t,
    welch_t_of_day,
    welch_t_of_sessions,
)

_ROUNDING = 1e-12
"""A standard deviation below this share of the values is rounding: the best clocks resolve 1e-9."""
_LARGE, _MEDIUM, _SMALL = 0.8, 0.5, 0.2
"""Least |Cohen's d| of a large, a medium and a small effect."""
_POINTS = 161
"""Points of the grid on which the density of the sums at a look is integrated."""
_TOLERANCE = 1e-4
"""How closely the search for Pocock's constant brackets it."""


def paired_evidence(
    base: Sequence[float],
    head: Sequence[float],
    *,
    alpha: float,
    absolute: bool = False,
    step: float = 0.0,
    fewest: int = 2,
    confidence: float = CONFIDENCE,
    speeds: TwoSpeeds | None = None,
) -> Evidence:
    """Return the evidence of pairs: paired t, with Welch's p next to it.

    ``speeds`` says that the values were corrected for two speeds of the machine. This costs one
    degree of freedom and widens the standard error.

    Notes
    -----
    The test is on logarithms, so that the estimate is a ratio and swapping the sides inverts it.
    Values of zero or below have no logarithm. Their change is of arithmetic means, as a share of
    base's mean, which is taken as exact (a warning says so). ``absolute`` asks for the difference
    itself. ``step`` is the instrument's, in the values' unit. Fewer pairs than ``fewest``
    give the estimate alone.
    """
    if problem := no_evidence((*base, *head)):
        return replace(NO_EVIDENCE, method="paired_t", findings=(problem,))
    scale = _Scale.of([base], head, absolute=absolute, step=step)
    before, after = scale.to(base), scale.to(head)
    test = paired_t(before, after, resolution=scale.resolution, confidence=confidence)
    if speeds and test.estimate is not None and test.se is not None and test.df is not None:
        se, df = test.se * speeds.widening, test.df - 1.0
        test = t_test(test.estimate, se, df, test.warnings, confidence)
    return scale.evidence(
        "paired_t",
        test,
        alpha,
        enough=len(before) >= fewest,
        welch_p=welch_t(before, after, resolution=scale.resolution).p,
        effect=cohens_d(before, after, resolution=scale.resolution),
        confidence=confidence,
    )


def unpaired_evidence(
    base_sessions: Sequence[Sequence[float]],
    head: Sequence[float],
    *,
    alpha: float,
    absolute: bool = False,
    step: float = 0.0,
    fewest: int = 2,
    day: DayShift | None = None,
) -> Evidence:
    """Return the evidence of head against a stored baseline of one or several sessions.

    ``step`` is the instrument's, in the values' unit. ``day`` is the shift of speed between the
    stored sessions and today. It is added to them, except on the scale ``share``. Fewer values than
    ``fewest`` on a side give the estimate alone.
    """
    base = [value for session in base_sessions for value in session]
    if problem := no_evidence((*base, *head)):
        return replace(NO_EVIDENCE, method="welch_t", findings=(problem,))
    scale = _Scale.of(base_sessions, head, absolute=absolute, step=step)
    day = None if scale.kind == "share" else day
    shift = day.mean if day else 0.0
    sessions = [[value + shift for value in scale.to(session)] for session in base_sessions]
    after = scale.to(head)
    without_day = welch_t_of_sessions(sessions, after, resolution=scale.resolution)
    test = welch_t_of_day(sessions, after, day, resolution=scale.resolution) if day else without_day
    before = [value for session in sessions for value in session]
    effect = cohens_d(before, after, resolution=scale.resolution)
    enough = min(len(base), len(head)) >= fewest
    return scale.evidence(
        "welch_t", test, alpha, enough=enough, welch_p=without_day.p, effect=effect
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """The transformation of values for the test, and of its estimate back.

    The change is a ratio of geometric means (``log``), the difference of arithmetic means as a
    share of base's mean (``share``), or this difference itself (``difference``).
    """

    kind: Literal["log", "share", "difference"]
    resolution: Resolution
    base_mean: float | None

    @classmethod
    def of(
        cls,
        base_sessions: Sequence[Sequence[float]],
        head: Sequence[float],
        *,
        absolute: bool,
        step: float,
    ) -> _Scale:
        """Return the scale. Base's mean is the mean of its sessions' means, as in the estimate."""
        values = (*itertools.chain.from_iterable(base_sessions), *head)
        largest = max(map(abs, values), default=0.0)
        means = [mean(session) for session in base_sessions if session]
        base_mean = mean(means) if means else None
        plain = Resolution(_ROUNDING * largest, step)
        if absolute:
            return cls("difference", plain, base_mean)
        if (least := min(values, default=0.0)) > 0.0:
            return cls("log", Resolution(_ROUNDING, step / least), base_mean)
        return cls("share", plain, base_mean)

    def to(self, values: Sequence[float]) -> list[float]:
        return [math.log(value) for value in values] if self.kind == "log" else list(values)

    def evidence(
        self,
        method: Literal["paired_t", "welch_t"],
        test: TTest,
        alpha: float,
        *,
        enough: bool,
        welch_p: float | None,
        effect: float | None,
        confidence: float = CONFIDENCE,
    ) -> Evidence:
        findings = test.warnings
        if self.kind == "share" and self.base_mean is not None:
            code = "arithmetic-means" if self.base_mean > 0.0 else "no-ratio-of-mean"
            findings += (finding(code),)
        if not enough:
            test, welch_p, effect = TTest(test.estimate), None, None
        estimates = test.estimate, test.lo, test.hi
        ratio, ratio_lo, ratio_hi = map(self._ratio, estimates)
        change, change_lo, change_hi = (
            estimates if self.kind == "difference" else (None, None, None)
        )
        return Evidence(
            method=method,
            ratio=ratio,
            ratio_lo=ratio_lo,
            ratio_hi=ratio_hi,
            difference=change,
            difference_lo=change_lo,
            difference_hi=change_hi,
            p=test.p,
            welch_p=welch_p,
            cohens_d=effect,
            detectable=self._detectable(test, alpha),
            se=test.se,
            df=test.df,
            findings=findings,
            confidence=confidence,
        )

    def _ratio(self, estimate: float | None) -> float | None:
        if estimate is None:
            return None
        if self.kind == "log":
            return bounded_exp(estimate)
        if self.kind == "share" and self.base_mean is not None and self.base_mean > 0.0:
            return 1.0 + estimate / self.base_mean
        return None

    def _detectable(self, test: TTest, alpha: float) -> float | None:
        # verdict/row_status.py computes it for `log`, from `se` and `df`
        if self.kind == "log" or test.se is None or test.df is None:
            return None
        if self.base_mean is None or self.base_mean <= 0.0:
            return None
        return detectable_difference(test.se, test.df, alpha) / self.base_mean


Magnitude = Literal["negligible", "small", "medium", "large"]


def cohens_d(
    base: Sequence[float], head: Sequence[float], *, resolution: Resolution = EXACT
) -> float | None:
    """Return Cohen's d of head against base, or None where there is no spread to compare with.

    Notes
    -----
    ``(mean(head) - mean(base)) / s_pooled`` with
    ``s_pooled² = ((n_b - 1) s_b² + (n_h - 1) s_h²) / (n_b + n_h - 2)`` (Cohen 1988, Statistical
    Power Analysis, 2.2). Reported for pairs too, with this same divisor. ``d_z``, which divides
    by the spread of the differences, grows as pairing gets better, and would call every detectable
    change large.
    """
    if min(len(base), len(head)) < 2 or no_evidence((*base, *head)):
        return None
    parts = [(len(side) - 1, variance(side, resolution)) for side in (base, head)]
    squares = sum(df * variance_of_side for df, variance_of_side in parts)
    pooled = squares / sum(df for df, _ in parts)
    if pooled == 0.0:
        return None
    return (mean(head) - mean(base)) / math.sqrt(pooled)


def magnitude(d: float) -> Magnitude:
    """Return Cohen's word for an effect size of either sign (Cohen 1988, 2.2.3)."""
    size = abs(d)
    if size >= _LARGE:
        return "large"
    if size >= _MEDIUM:
        return "medium"
    return "small" if size >= _SMALL else "negligible"


@dataclass(frozen=True, slots=True)
class Summary:
    """A centre and its 95 % interval, None where it cannot be known."""

    center: float | None
    lo: float | None = None
    hi: float | None = None


def summarise(values: Sequence[float], *, logarithmic: bool = True) -> Summary:
    """Return the geometric mean with its t interval; the arithmetic one for values ≤ 0.

    Notes
    -----
    ``exp(mean(log x) ± t(0.975; n - 1) s / √n)``: times are skewed to the right and compared
    as ratios, and the ratio of two geometric means is the mean of the log ratios (Fleming &
    Wallace 1986, Communications of the ACM 29:218-221). ``logarithmic=False`` asks for the
    arithmetic mean always, for metrics that are compared by differences.
    """
    if not values or no_evidence(values):
        return Summary(None)
    logarithmic = logarithmic and min(values) > 0.0
    scaled = [math.log(value) for value in values] if logarithmic else list(values)
    if len(scaled) < 2:
        return Summary(values[0])
    center = mean(scaled)
    half_width = t_quantile(0.5 + CONFIDENCE / 2, len(scaled) - 1) * math.sqrt(
        variance(scaled) / len(scaled)
    )
    back = bounded_exp if logarithmic else float
    return Summary(back(center), back(center - half_width), back(center + half_width))


def bounded_exp(exponent: float) -> float:
    """Return ``exp(exponent)``, kept between 1e-300 and 1e300: reports hold finite numbers only."""
    return math.exp(min(max(exponent, -690.0), 690.0))


def holm(p_values: Sequence[float], family: int = 0) -> tuple[float, ...]:
    """Return each p adjusted for the number of tests, in the order given.

    ``family`` is the number of tests if not every p is known. An unknown p counts as no smaller
    than the known ones.

    Notes
    -----
    With p sorted, ``max over j ≤ i of min(1, (m - j + 1) p_j)`` (Holm 1979, Scandinavian
    Journal of Statistics 6:65-70). Keeps the chance of any false alarm at alpha, whatever the
    dependence between the tests. Latency and throughput of one case are such dependent tests.
    """
    count = max(len(p_values), family)
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def benjamini_hochberg(p_values: Sequence[float], tests: int) -> tuple[float, ...]:
    """Return the q of each p, in the order given, where ``tests`` were made in all.

    Tests whose p is not among ``p_values`` count as not significant.

    Notes
    -----
    With p sorted, ``min over j ≥ i of min(1, p_j tests / j)`` (Benjamini and Hochberg 1995,
    Journal of the Royal Statistical Society B 57:289-300). Naming the tests with q ≤ 0.05 keeps the
    expected share of false ones among them at 5 %. This holds for independent tests and for
    positively dependent ones (Benjamini and Yekutieli 2001, Annals of Statistics 29:1165-1188), as
    metrics of one run on one machine are. Their correction for arbitrary dependence was not taken:
    it divides by 10 at 16,000 series, and shared machine noise makes series move together.
    """
    count = max(tests, len(p_values))
    q_values = [1.0] * len(p_values)
    smallest = 1.0
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for rank in range(len(order), 0, -1):
        index = order[rank - 1]
        smallest = min(smallest, p_values[index] * count / rank)
        q_values[index] = smallest
    return tuple(q_values)


@lru_cache(64)
def look_confidence(least: int, most: int) -> float:
    """Return the confidence of the interval at each look, for 95 % over all looks.

    There is a look after each of ``least`` to ``most`` pairs; with one look it is 95 %.

    Notes
    -----
    Pocock's constant ``c`` (Pocock 1977, Biometrika 64:191-199): ``P(|Z_n| < c at every look) =
    0.95`` for the standardised sums of n normal values, by the recursion of Armitage, McPherson &
    Rowe 1969 (Journal of the Royal Statistical Society A 132:235-244). Each look then has the
    two-sided level ``2 (1 - Φ(c))``, even if the spread is estimated (significance levels:
    Jennison & Turnbull 2000, Group Sequential Methods, 3.8). With 5 to 20 pairs that is 98.9 %.
    """
    if most <= least:
        return CONFIDENCE
    below, above = 1.9, 4.0
    while above - below > _TOLERANCE:
        middle = (below + above) / 2.0
        if _always_within(middle, least, most) < CONFIDENCE:
            below = middle
        else:
            above = middle
    return math.erf(above / math.sqrt(2.0))


def _always_within(bound: float, least: int, most: int) -> float:
    """Return the chance that the standardised sum stays within ``bound`` at every look."""
    import numpy as np

    points = np.linspace(-1.0, 1.0, _POINTS) * bound * math.sqrt(least)
    density = np.exp(-(points**2) / (2.0 * least)) / math.sqrt(2.0 * math.pi * least)
    weights = np.ones(_POINTS)
    weights[0] = weights[-1] = 0.5
    for count in range(least + 1, most + 1):
        after = np.linspace(-1.0, 1.0, _POINTS) * bound * math.sqrt(count)
        steps = np.exp(-((after[:, None] - points) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
        density = steps @ (density * weights) * (points[1] - points[0])
        points = after
    return float(np.sum(density * weights) * (points[1] - points[0]))
