"""Where a series might have moved: the best split of each of many seeded intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from perfci.trend.noise import Prepared, inflation

if TYPE_CHECKING:
    from numpy.typing import NDArray

DECAY = 1.5


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best splits of intervals, the strongest first; each array is (k,).

    ``places`` are the first points of new levels, ``strengths`` are in standard errors,
    ``begins`` and ``ends`` bound the intervals.
    """

    places: NDArray[Any]
    strengths: NDArray[Any]
    begins: NDArray[Any]
    ends: NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Layer:
    length: int
    starts: NDArray[Any]
    left: NDArray[Any]


@lru_cache(maxsize=64)
def _layers(size: int, shortest: int) -> tuple[_Layer, ...]:
    import numpy as np

    made = []
    length = 2 * shortest
    while length < size:
        step = max(1, length // 3)
        starts = np.unique(np.append(np.arange(0, size - length, step), size - length))
        made.append(_Layer(length, starts, np.arange(shortest, length - shortest + 1)))
        length = max(length + 1, int(length * DECAY))
    made.append(_Layer(size, np.zeros(1, dtype=np.intp), np.arange(shortest, size - shortest + 1)))
    return tuple(made)


def find_candidates(prepared: Prepared, *, least: float) -> Candidates:
    """Return the splits that are at least ``least`` standard errors strong, one for each interval.

    Notes
    -----
    Seeded binary segmentation: intervals of geometrically growing length that overlap by two
    thirds, so that each step has one that holds it alone (Kovács, Bühlmann, Li and Munk 2023,
    Biometrika 110:249-256). O(n log n).
    """
    import numpy as np

    cleaned, rho = prepared.cleaned, prepared.rho
    sums = np.concatenate([[0.0], np.cumsum(cleaned - cleaned.mean())])
    places, strengths, begins, ends = [], [], [], []
    for layer in _layers(len(cleaned), prepared.shortest):
        left, right = layer.left, layer.length - layer.left
        first = sums[layer.starts, None]
        middle = sums[layer.starts[:, None] + left]
        last = sums[layer.starts + layer.length, None]
        weight = inflation(left.astype(float), rho) / left
        weight = prepared.sigma * np.sqrt(weight + inflation(right.astype(float), rho) / right)
        strength = np.abs((middle - first) / left - (last - middle) / right) / weight
        best = strength.argmax(axis=1)
        places.append(layer.starts + left[best])
        strengths.append(strength[np.arange(len(best)), best])
        begins.append(layer.starts)
        ends.append(layer.starts + layer.length)
    place, strength = np.concatenate(places), np.concatenate(strengths)
    strong = np.flatnonzero(strength >= least)
    order = strong[np.argsort(-strength[strong], kind="stable")]
    return Candidates(
        place[order], strength[order], np.concatenate(begins)[order], np.concatenate(ends)[order]
    )
