"""Data for the scripts of a comparison's page and of a trend's site, and small lines."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENTITIES = {
    b"<": rb"\u003c",  # no </script> and no <!-- wherever the text may be pasted
    b">": rb"\u003e",
    b"&": rb"\u0026",
    "\u2028".encode(): rb"\u2028",
    "\u2029".encode(): rb"\u2029",
}
"""Characters that JSON has only inside strings, so that replacing their bytes is safe."""
_SPARK = (120.0, 30.0)
"""Width and height of a small line, in px."""
_EDGE = 2.0
"""Empty margin around a small line, in px."""


def literal(value: Any) -> bytes:
    """Return ``value`` as JSON that is safe inside a script element of a page."""
    import msgspec

    encoded: bytes = msgspec.json.encode(value, enc_hook=float)  # numpy's numbers are not Python's
    for character, spelled in _ENTITIES.items():
        encoded = encoded.replace(character, spelled)
    return encoded


@dataclass(frozen=True, slots=True)
class Spark:
    """A small line of ``width`` × ``height``. ``path`` is SVG's ``d``, ``marks`` the changes' x."""

    path: str
    marks: tuple[float, ...]
    width: float
    height: float


def spark(
    values: NDArray[Any], marks: tuple[int, ...] = (), size: tuple[float, float] = _SPARK
) -> Spark:
    """Draw finite ``values`` (n,): one point for two pixels, the median of the values there.

    The outermost 2 % of the points don't decide the height: one outlier would make the rest flat.
    """
    import numpy as np

    count, (width, height) = len(values), size
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
