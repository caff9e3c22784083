"""A series as a line of a few pixels, drawn into the page: it shows where the jump is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH, HEIGHT = 120.0, 30.0
_EDGE = 2.0


@dataclass(frozen=True, slots=True)
class Spark:
    """``path`` for SVG's ``d``; ``marks`` are x positions of changes. ``width`` × ``height``."""

    path: str
    marks: tuple[float, ...] = ()
    width: float = WIDTH
    height: float = HEIGHT


def spark(
    values: NDArray[Any], marks: tuple[int, ...] = (), width: float = WIDTH, height: float = HEIGHT
) -> Spark:
    """Draw finite ``values`` (n,): a point for two pixels, each the median of its share.

    The outermost 2 % don't decide the height: one outlier would make a flat line of the rest.
    """
    import numpy as np

    count = len(values)
    if count == 0:
        return Spark("", (), width, height)
    bins = min(count, int(width) // 2)
    edges = np.linspace(0, count, bins + 1).astype(int)
    points = np.array([np.median(values[a:b]) for a, b in pairwise(edges)])
    lo, hi = np.quantile(points, (0.02, 0.98))
    centre, span = (lo + hi) / 2.0, max(hi - lo, abs(lo) * 0.02, 1e-300)
    across = np.linspace(_EDGE, width - _EDGE, bins) if bins > 1 else np.array([width / 2.0])
    share = np.clip(0.5 - (points - centre) / span, 0.0, 1.0)
    down = _EDGE + share * (height - 2.0 * _EDGE)
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(across, down, strict=True))
    step = (width - 2.0 * _EDGE) / max(count - 1, 1)
    return Spark(path, tuple(round(_EDGE + mark * step, 1) for mark in marks), width, height)
