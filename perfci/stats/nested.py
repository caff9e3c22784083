"""The paired t test of pairs nested within ancestors: pairs of one ancestor may be alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfci.model.finding import ANCESTORS_DIFFER, found
from perfci.stats.paired import paired_t
from perfci.stats.student import CONFIDENCE, EXACT, Resolution, TTest, mean, t_quantile, t_test

REPORTED_BELOW = 0.25
"""The p of the F test below which a finding says that ancestors differ."""


def nested_t(
    base: Sequence[float],
    head: Sequence[float],
    ancestors: Sequence[int],
    *,
    resolution: Resolution = EXACT,
    confidence: float = CONFIDENCE,
) -> TTest:
    """Test the mean of ``head - base`` against zero, where pairs of one ancestor may be alike.

    ``ancestors`` has each pair's; 0 is one that no other pair has. Where every pair has its own,
    this is ``paired_t``.

    Notes
    -----
    Random effects, one level: ``d_ij = μ + a_i + e_ij`` with ``n_i`` pairs of each of ``k``
    ancestors, N in all (Searle, Casella & McCulloch 1992, Variance Components, 3.6: unbalanced
    data). The mean of all pairs has ``SE² = s_a² Σ n_i² / N² + s_e² / N`` with the components
    estimated from the mean squares, and ``df = k - 1``. It is never taken as less than the pooled
    ``s² / N``, which ignores ancestors. With as many pairs of each ancestor, that is the t test of
    the ancestors' means where they differ, and wider where they don't.

    Pooling where an F test sees no difference (Bancroft 1964, Biometrics 20:427-442) was rejected:
    90 to 91 % of the intervals then hold a change at the threshold. So were weights that are best
    for the components, whose intervals hold no better, and Satterthwaite's degrees of freedom, of
    which 89 to 93 % hold. Assumes effects of ancestors and of pairs independent and about normal.
    One ancestor says nothing of the variance between ancestors: no evidence. How few do:
    docs/results/ancestors.md.
    """
    if len(ancestors) != len(base):
        raise ValueError(f"{len(ancestors)} ancestors of {len(base)} pairs")
    pooled = paired_t(base, head, resolution=resolution, confidence=confidence)
    groups = grouped([b - a for a, b in zip(base, head, strict=True)], ancestors)
    if pooled.estimate is None or pooled.se is None or len(groups) == len(base):
        return pooled
    if len(groups) < 2:
        return TTest(pooled.estimate, warnings=(found("one-ancestor"),))
    parts = components(groups, resolution)
    count = len(base)
    shares = math.fsum((len(group) / count) ** 2 for group in groups)
    se = max(math.sqrt(parts.between * shares + parts.within / count), pooled.se)
    df = len(groups) - 1
    if parts.p >= REPORTED_BELOW:
        return t_test(pooled.estimate, se, df, confidence=confidence)
    upper = 0.5 + confidence / 2
    wider = se * t_quantile(upper, df) / (pooled.se * t_quantile(upper, count - 1))
    differ = found(ANCESTORS_DIFFER, ancestors=len(groups), wider=wider)
    return t_test(pooled.estimate, se, df, (differ,), confidence)


@dataclass(frozen=True, slots=True)
class Components:
    """The variance between ancestors and within them, and the p of there being none between."""

    between: float
    within: float
    p: float


def components(groups: Sequence[Sequence[float]], resolution: Resolution = EXACT) -> Components:
    """Return the components of variance of grouped values: two groups at least, one of two values.

    Notes
    -----
    The ANOVA estimators ``s_e² = MSE``, ``s_a² = max(0, (MSA - MSE) / n_0)`` with
    ``n_0 = (N - Σ n_i² / N) / (k - 1)`` (Searle, Casella & McCulloch 1992, 3.6). A mean square
    is never less than what ``resolution`` hides.
    """
    from scipy import special

    values = [value for group in groups for value in group]
    count, center = len(values), mean(values)
    df_between, df_within = len(groups) - 1, count - len(groups)
    between = math.fsum(len(group) * (mean(group) - center) ** 2 for group in groups) / df_between
    within = math.fsum((v - mean(group)) ** 2 for group in groups for v in group) / df_within
    within = max(within if math.sqrt(within) > resolution.rounding else 0.0, resolution.least)
    if math.sqrt(between) <= resolution.rounding:
        return Components(0.0, within, 1.0)
    size = (count - sum(len(group) ** 2 for group in groups) / count) / df_between
    p = float(special.fdtrc(df_between, df_within, between / within)) if within else 0.0
    return Components(max(0.0, (between - within) / size), within, p)


def grouped(values: Sequence[float], ancestors: Sequence[int]) -> list[list[float]]:
    """Return the values by ancestor; each of ancestor 0 is alone."""
    groups: dict[tuple[int, int], list[float]] = {}
    for index, (value, ancestor) in enumerate(zip(values, ancestors, strict=True)):
        groups.setdefault((ancestor, 0) if ancestor else (0, index), []).append(value)
    return list(groups.values())


def how_many(ancestors: Sequence[int]) -> int:
    """Return how many ancestors these are; each 0 is one."""
    return len(set(ancestors) - {0}) + sum(ancestor == 0 for ancestor in ancestors)
