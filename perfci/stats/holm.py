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
