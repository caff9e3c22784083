"""A round's pair of values: the sides' own, or as their bursts that lay side by side tell it.

Pure. A busy machine's speed changes within a round. Two bursts that followed each other had the
same neighbours; the medians over all of a side's bursts need not.
"""

from __future__ import annotations

import math

from perfci.record.worker import WorkerOutput
from perfci.stats.quantile import median


def pair_values(base: WorkerOutput, head: WorkerOutput, metric: str) -> tuple[float, float]:
    """Return one round's values of ``metric``, base's and head's.

    Where both sides have bursts of it, their ratio is the median over the bursts' ratios, each
    to the other side's next to it, and their geometric mean is that of the sides' own values:
    swapping the sides swaps the values.
    """
    before, after = float(base.values[metric]), float(head.values[metric])
    ratios = _log_ratios(base, head, metric)
    if not ratios or min(before, after) <= 0.0:
        return before, after
    center, half = math.sqrt(before * after), median(ratios) / 2.0
    return center * math.exp(-half), center * math.exp(half)


def _log_ratios(base: WorkerOutput, head: WorkerOutput, metric: str) -> list[float]:
    """Sides take bursts as A B B A: the k-th of one is next to the k-th of the other."""
    before, after = base.bursts.get(metric, ()), head.bursts.get(metric, ())
    if len(before) != len(after):
        return []
    return [math.log(h / b) for b, h in zip(before, after, strict=True) if b and h]
