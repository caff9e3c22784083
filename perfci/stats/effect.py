"""How large a change is beside the spread between workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from perfci.stats.student import EXACT, Resolution, mean, no_evidence, variance

Magnitude = Literal["negligible", "small", "medium", "large"]
_LARGE, _MEDIUM, _SMALL = 0.8, 0.5, 0.2


def cohens_d(
    base: Sequence[float], head: Sequence[float], *, resolution: Resolution = EXACT
) -> float | None:
    """Return Cohen's d of head against base, or None where there is no spread to compare with.

    Notes
    -----
    ``(mean(head) - mean(base)) / s_pooled`` with
    ``s_pooled² = ((n_b - 1) s_b² + (n_h - 1) s_h²) / (n_b + n_h - 2)`` (Cohen 1988, Statistical
    Power Analysis, 2.2). Reported for pairs too, with this same divisor: ``d_z``, which divides
    by the spread of the differences, grows as pairing gets better and would say of any change
    that could be detected that it is large.
    """
    if min(len(base), len(head)) < 2 or no_evidence((*base, *head)):
        return None
    parts = [(len(side) - 1, variance(side, resolution)) for side in (base, head)]
    pooled = sum(df * spread for df, spread in parts) / sum(df for df, _ in parts)
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
