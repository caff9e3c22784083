"""The centre of one side's workers, and how well it is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfci.stats.student import CONFIDENCE, mean, no_evidence, t_quantile, variance


@dataclass(frozen=True, slots=True)
class Summary:
    """A centre and its 95 % interval, which is None where it cannot be known."""

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
    arithmetic mean always, for what is compared by differences.
    """
    if not values or no_evidence(values):
        return Summary(None)
    logarithmic = logarithmic and min(values) > 0.0
    scaled = [math.log(value) for value in values] if logarithmic else list(values)
    center = mean(scaled)
    if len(scaled) < 2:
        return Summary(values[0])
    half_width = t_quantile(0.5 + CONFIDENCE / 2, len(scaled) - 1) * math.sqrt(
        variance(scaled) / len(scaled)
    )
    back = bounded_exp if logarithmic else float
    return Summary(back(center), back(center - half_width), back(center + half_width))


def bounded_exp(exponent: float) -> float:
    """Return ``exp(exponent)``, kept between 1e-300 and 1e300: reports hold finite numbers only."""
    return math.exp(min(max(exponent, -690.0), 690.0))
