"""How well a spread is known, and whether one spread is larger than another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfci.stats.student import CONFIDENCE

_NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A sample's standard deviation, and the degrees of freedom it was taken with."""

    value: float
    df: int


@dataclass(frozen=True, slots=True)
class SpreadRatio:
    """One spread ÷ another, with its 95 % interval."""

    ratio: float
    lo: float
    hi: float


def upper_bound(spread: Spread, confidence: float = CONFIDENCE) -> float:
    """Return the value that the true standard deviation is below, with ``confidence``.

    Notes
    -----
    ``s √(df / χ²(1 - confidence; df))`` (Snedecor & Cochran 1989, Statistical Methods, 5.11).
    Assumes about normal values; with heavy tails the bound is too near.
    """
    from scipy import special

    return spread.value * math.sqrt(spread.df / float(special.chdtri(spread.df, confidence)))


def spread_ratio(pairs: Sequence[tuple[Spread, Spread]]) -> SpreadRatio | None:
    """Return how many times larger the first spread of each pair is than the second, pooled.

    Notes
    -----
    One pair: ``s₁²/s₂²`` with the F interval (Snedecor & Cochran 1989, 6.12). Several, each
    with a spread of its own and one ratio in common: the weighted mean of ``log(s₁²/s₂²)``,
    each less its bias ``ψ(d/2) - log(d/2)`` a side, with weights 1 ÷ ``ψ'(d₁/2) + ψ'(d₂/2)``,
    the variance of log F (Bartlett & Kendall 1946, Supplement to the Journal of the Royal
    Statistical Society 8:128-138). Pooling the variances themselves was rejected: the noisiest
    benchmark would speak for all. Assumes about normal values. None where no pair has spread.
    """
    usable = [(a, b) for a, b in pairs if a.value > 0 < b.value and a.df > 0 < b.df]
    if not usable:
        return None
    if len(usable) == 1:
        return _single(*usable[0])
    weights = [1.0 / (_variance(a.df) + _variance(b.df)) for a, b in usable]
    logs = [2.0 * math.log(a.value / b.value) - (_bias(a.df) - _bias(b.df)) for a, b in usable]
    center = math.fsum(w * x for w, x in zip(weights, logs, strict=True)) / math.fsum(weights)
    half_width = _NORMAL / math.sqrt(math.fsum(weights))
    return SpreadRatio(
        *(math.exp(x / 2.0) for x in (center, center - half_width, center + half_width))
    )


def _single(first: Spread, second: Spread) -> SpreadRatio:
    from scipy import special

    tail = (1.0 - CONFIDENCE) / 2.0
    ratio = (first.value / second.value) ** 2
    lower, upper = (float(special.fdtri(first.df, second.df, p)) for p in (1.0 - tail, tail))
    return SpreadRatio(math.sqrt(ratio), math.sqrt(ratio / lower), math.sqrt(ratio / upper))


def _bias(df: int) -> float:
    from scipy import special

    return float(special.digamma(df / 2.0)) - math.log(df / 2.0)


def _variance(df: int) -> float:
    from scipy import special

    return float(special.polygamma(1, df / 2.0))
