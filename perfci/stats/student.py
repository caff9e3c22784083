"""Student's t: the distribution, sample moments, and the result every t test here returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from perfci.model.finding import Finding, found

CONFIDENCE = 0.95
LARGEST = 1e150
"""Values beyond it, or nearer to zero than its inverse, are not computed with: a float holds the
squares and ratios of all others. Only a benchmark's own metric could come near it."""


@dataclass(frozen=True, slots=True)
class TTest:
    """What one t test says. Everything but ``estimate`` is None where there is no evidence.

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
    """How finely values are known, in their own unit.

    A spread up to ``rounding`` is what floats do to a constant, and counts as none. An instrument
    that counts in steps of ``step`` (pages, ticks) may show the same value, or the same change,
    every time: the spread that such rounding hides is never taken as less than ``least``.
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
    """Return the value that Student's t with ``df`` degrees of freedom stays below so often."""
    from scipy import special

    return float(special.stdtrit(df, probability))


def no_evidence(values: Sequence[float]) -> Finding | None:
    """Return why ``values`` can't be computed with, or None."""
    if not all(map(math.isfinite, values)):
        return found("not-finite")
    if any(value and not 1.0 / LARGEST <= abs(value) <= LARGEST for value in values):
        return found("out-of-range", largest=LARGEST)
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
    ``Σ (x - mean)² / (n - 1)``, in two passes. Needs two values. Without ``resolution`` a
    constant times 1.1 shows a spread of 1e-16 and any change of it would be "significant".
    """
    center = mean(values)
    spread = math.fsum((value - center) ** 2 for value in values) / (len(values) - 1)
    return max(spread if math.sqrt(spread) > resolution.rounding else 0.0, resolution.least)
