"""Outliers of a sample, by a stated rule: values too far from the others to be chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perfci.stats.student import EXACT, Resolution, mean, no_evidence, t_quantile, variance

SIGNIFICANCE = 0.001
LEAST_KEPT = 5
ONE_IN = 5


def outlier_indices(values: Sequence[float], *, resolution: Resolution = EXACT) -> tuple[int, ...]:
    """Return the indices of the outliers, ascending; often none.

    Notes
    -----
    Generalized extreme Studentized deviate (Rosner 1983, Percentage points for a generalized
    ESD many-outlier procedure, Technometrics 25:165-172) at significance 0.001: the value
    farthest from the mean, in standard deviations, is taken away and the rest looked at again,
    up to one value in five and never leaving fewer than five; the last deviation above its
    critical value ``(n - i) t / √((n - i - 1 + t²)(n - i + 1))``,
    ``t = t(1 - 0.001 / 2(n - i + 1); n - i - 1)``, says how many outliers there are. A second
    outlier does not mask the first, as in one test after the other. Assumes the rest about normal.
    """
    count = len(values)
    most = min(count // ONE_IN, count - LEAST_KEPT)
    if most < 1 or no_evidence(values):
        return ()
    left = list(range(count))
    taken: list[int] = []
    found = 0
    for step in range(1, most + 1):
        rest = [values[index] for index in left]
        spread = variance(rest, resolution)
        if spread == 0.0:
            break
        center = mean(rest)
        distance, farthest = max((abs(values[index] - center), index) for index in left)
        left.remove(farthest)
        taken.append(farthest)
        if distance / math.sqrt(spread) > _critical(count, step):
            found = step
    return tuple(sorted(taken[:found]))


def _critical(count: int, step: int) -> float:
    left = count - step
    t = t_quantile(1.0 - SIGNIFICANCE / (2.0 * (left + 1)), left - 1)
    return left * t / math.sqrt((left - 1 + t * t) * (left + 1))
