"""Holm's correction: many comparisons in one report, one false alarm rate."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float], family: int = 0) -> tuple[float, ...]:
    """Return each p adjusted for being one of so many, in the order given.

    ``family`` is how many there are where not all are known; the others count as no smaller.

    Notes
    -----
    With p sorted, ``max over j ≤ i of min(1, (m - j + 1) p_j)`` (Holm 1979, Scandinavian
    Journal of Statistics 6:65-70). Holds the chance of any false alarm at alpha whatever the
    dependence between the tests, which latency and throughput of one case need.
    """
    count = max(len(p_values), family)
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


# False-discovery control over all series of a report.


def benjamini_hochberg(p_values: Sequence[float], tests: int) -> tuple[float, ...]:
    """Return the q of each p, in the order given, where ``tests`` were made in all.

    Tests whose p is not among ``p_values`` count as not significant.

    Notes
    -----
    With p sorted, ``min over j ≥ i of min(1, p_j tests / j)`` (Benjamini and Hochberg 1995,
    Journal of the Royal Statistical Society B 57:289-300). Naming those with q ≤ 0.05 keeps the
    expected share of false ones among them at 5 %, for independent tests and for positively
    dependent ones (Benjamini and Yekutieli 2001, Annals of Statistics 29:1165-1188), as metrics of
    one run on one machine are. Their correction for arbitrary dependence was not taken: it
    divides by 10 at 16,000 series, and shared machine noise makes series move together.
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
