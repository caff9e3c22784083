"""Tests of one difference a round, both sides measured together: of values, and of counts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from perfci.model.finding import found
from perfci.stats.student import (
    CONFIDENCE,
    EXACT,
    Resolution,
    TTest,
    mean,
    no_evidence,
    t_test,
    variance,
)


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
    Statistical Methods, 6.3). Assumes pairs independent of each other and differences about
    normal; nothing about the spread that both sides of a pair share. On logarithms the
    difference is a log ratio.
    """
    if len(base) != len(head):
        raise ValueError(f"{len(base)} values on base and {len(head)} on head are no pairs")
    differences = [after - before for before, after in zip(base, head, strict=True)]
    if not differences:
        return TTest(None, warnings=(found("no-pairs"),))
    if problem := no_evidence((*base, *head)):
        return TTest(None, warnings=(problem,))
    count = len(differences)
    estimate = mean(differences)
    if count < 2:
        return TTest(estimate, warnings=(found("one-pair"),))
    spread = variance(differences, resolution)
    if spread == 0.0:
        return without_spread(estimate, resolution)
    return t_test(estimate, math.sqrt(spread) / math.sqrt(count), count - 1, confidence=confidence)


def without_spread(estimate: float, resolution: Resolution) -> TTest:
    """Return what values without any spread say: nothing of a change, even where they differ.

    Sides that agree to the last digit bound the change at zero; sides that differ by a
    constant may be a clock or a counter that is stuck, and bound nothing.
    """
    if abs(estimate) <= resolution.rounding:
        return TTest(0.0, lo=0.0, hi=0.0, warnings=(found("same-values"),))
    return TTest(estimate, warnings=(found("no-spread"),))


def sign_flip_p(differences: Sequence[int]) -> float:
    """Return the one-sided p of a sum of paired differences of counts being so large by chance.

    Notes
    -----
    The exact randomisation test of pairs (Fisher 1935, The Design of Experiments, 21): where the
    sides are alike, swapping them within a round is as likely, so each difference has either sign
    with probability 1/2, independently of the others. The distribution of the sum is convolved
    difference by difference (Pagano & Tritchler 1983, JASA 78:435-440). It assumes nothing of the
    counts within a round, which one neighbour of the machine may make large together; a test that
    takes them as independent (Fisher's exact test, a binomial) would. Of n differences other than
    0, p is at least 2^-n: 0.031 of five.
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
