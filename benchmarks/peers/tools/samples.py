"""Rules that users apply to lists of seconds, as pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.utils.benchmark import Measurement


def change_of(base: float, head: float) -> float:
    """Return by what share head is slower."""
    return head / base - 1.0


def usual_recipe(base: Sequence[float], head: Sequence[float]) -> bool:
    """Welch's t over single calls: head slower with Cohen's abs(d) > 0.2."""
    from scipy.stats import ttest_ind

    p = float(ttest_ind(base, head, equal_var=False).pvalue)
    pooled = math.sqrt((statistics.variance(base) + statistics.variance(head)) / 2.0)
    slower = statistics.fmean(head) - statistics.fmean(base)
    return p < 0.05 and slower > 0.2 * pooled


def quartiles_apart(base: Measurement, head: Measurement) -> bool:
    """Say whether head's interquartile range lies wholly above base's."""
    base_range = statistics.quantiles(base.times, n=4, method="inclusive")
    head_range = statistics.quantiles(head.times, n=4, method="inclusive")
    return head_range[0] > base_range[2]


def figures_apart(base: Measurement, head: Measurement) -> bool:
    """Say whether head's median is above base's in the figures that both can claim.

    As ``Compare.trim_significant_figures`` prints them: what is equal after trimming to
    ``Measurement.significant_figures`` can't be told apart.
    """
    from torch.utils.benchmark.utils.common import trim_sigfig

    figures = min(base.significant_figures, head.significant_figures)
    return trim_sigfig(head.median, figures) > trim_sigfig(base.median, figures)
