"""The drawings that a comparison's page and a trend's site share, and flame graphs.

Numbers are packed for the scripts that draw them. The width of a flame graph's box is the
function's mean time over both sides. So no box is wider than its caller's, and a function that only
one side calls has a box, too. A box's colour shows how much more or less time head takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from perfci.model.why import Stack, Why
from perfci.report.clean import clean_line
from perfci.units import format_difference, format_value

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
_CHART_DIGITS = 5
"""Digits of packed values after the typical value's first digit. No chart shows more."""
_LARGEST = 2.0**52
"""Largest packed number. Up to here a browser's numbers hold every whole number."""
_LEAST_SCALE = 1e-300
"""Least step between packed values."""
_SPARK = (120.0, 30.0)
"""Width and height of a small line, in px."""
_EDGE = 2.0
"""Empty margin around a small line, in px."""
WIDTH, ROW = 1000.0, 20
"""Width of a flame graph, and height of one of its rows, in units of the drawing."""
_NARROWEST = 4.0
"""Least width of a box. A narrower box is left out. Its time is still in its caller's box."""
_CHARACTER = 6.6
"""Width of a label's character."""
_DEEPEST, _MOST_LINES = 40, 12
"""Rows of a flame graph below the call, and functions in the table under it."""
_SLIGHT, _MUCH = 0.02, 0.10
"""A box's colour is slight, or strong, from these shares of base's call on."""


def literal(value: Any) -> bytes:
    """Return ``value`` as JSON that is safe inside a script element of a page."""
    import msgspec

    encoded: bytes = msgspec.json.encode(value, enc_hook=float)  # numpy's numbers are not Python's
    for character, spelled in _ENTITIES.items():
        encoded = encoded.replace(character, spelled)
    return encoded


@dataclass(frozen=True, slots=True)
class Packed:
    """Values as whole steps: ``value[i] = scale * (deltas[0] + … + deltas[i])``."""

    scale: float
    deltas: list[int]


def pack(values: NDArray[Any], scale: float | None = None) -> Packed:
    """Pack finite ``values`` (n,) in steps of ``scale``, by default the scale that suits them."""
    import numpy as np

    if not len(values):
        return Packed(1.0, [])
    if scale is None:
        scale = scale_of(values)
    whole = np.rint(values / scale).astype(np.int64)
    whole[1:] -= whole[:-1].copy()
    return Packed(scale, whole.tolist())


def scale_of(values: NDArray[Any]) -> float:
    """Return the step for ``values``: 1 if all are whole, else small against the typical value."""
    import numpy as np

    sizes = np.abs(values)
    largest = float(sizes.max())
    if largest < _LARGEST and bool((values == np.rint(values)).all()):
        return 1.0
    middle = len(sizes) // 2  # np.median takes four times as long for the same
    # divide first: the sum of two large values could overflow
    ordered = np.partition(sizes / 4.0, (max(0, middle - 1), middle))
    lower = middle if len(sizes) % 2 else middle - 1
    typical = 2.0 * float(ordered[lower] + ordered[middle]) or largest
    digits = 10.0 ** max(math.floor(math.log10(typical)) - _CHART_DIGITS, -300)
    return max(digits, largest / _LARGEST, _LEAST_SCALE)


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


@dataclass(frozen=True, slots=True)
class Box:
    """One function, drawn below its caller. ``shade`` is its CSS class, ``label`` what fits."""

    x: float
    y: int
    width: float
    label: str
    title: str
    shade: str


@dataclass(frozen=True, slots=True)
class Flame:
    """A case's flame graph. ``lines`` is a table of the functions whose own time moved most."""

    case: str
    summary: str
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[tuple[str, str, str, str], ...]


@dataclass(slots=True)
class _Node:
    name: str
    base: float = 0.0
    head: float = 0.0
    below: dict[str, _Node] = field(default_factory=dict)


def flame_of(why: Why) -> Flame | None:
    """Return a case's flame graph, or None if a side has no samples."""
    root = _tree(why.stacks)
    if root.base <= 0.0 or root.head <= 0.0:
        return None
    boxes = tuple(_boxes(root, root.base, WIDTH / (root.base + root.head)))
    return Flame(
        case=clean_line(why.case),
        summary=f"a call takes {_times(root)} on the host, sampled under the profiler",
        height=max(box.y for box in boxes) + ROW,
        boxes=boxes,
        lines=tuple(_lines(why.stacks)),
    )


def _tree(stacks: Sequence[Stack]) -> _Node:
    root = _Node("a call")
    for stack in stacks:
        node = root
        for name in ("", *stack.frames[:_DEEPEST]):  # the empty name is the root: the whole call
            node = node.below.setdefault(name, _Node(name)) if name else root
            node.base += stack.base
            node.head += stack.head
    return root


def _boxes(root: _Node, call_s: float, scale: float) -> Iterator[Box]:
    waiting = [(root, 0.0, 0)]
    while waiting:
        node, x, depth = waiting.pop()
        width = (node.base + node.head) * scale
        if width < _NARROWEST:
            continue
        name = clean_line(node.name, 200)
        fits = int((width - 6) / _CHARACTER)
        yield Box(
            x=round(x, 2),
            y=depth * ROW,
            width=round(width, 2),
            label=name if len(name) <= fits else f"{name[: fits - 1]}…" if fits > 3 else "",
            title=f"{name}: {_times(node)}",
            shade=_shade((node.head - node.base) / call_s),
        )
        for child in sorted(node.below.values(), key=lambda child: child.name):
            waiting.append((child, x, depth + 1))
            x += (child.base + child.head) * scale


def _shade(gain: float) -> str:
    amount = "much" if abs(gain) >= _MUCH else "slightly"
    if abs(gain) < _SLIGHT:
        return "same"
    return f"{amount} {'worse' if gain > 0 else 'better'}"


def _lines(stacks: Sequence[Stack]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the functions whose own time differs most, each as name, base, head and change."""
    own: dict[str, _Node] = {}
    for stack in stacks:
        name = stack.frames[-1] if stack.frames else ""
        node = own.setdefault(name, _Node(name))
        node.base += stack.base
        node.head += stack.head
    most = sorted(own.values(), key=lambda node: -abs(node.head - node.base))
    for node in most[:_MOST_LINES]:
        change = format_difference(node.head - node.base, "s")
        times = (format_value(node.base, "s"), format_value(node.head, "s"))
        yield clean_line(node.name, 200) or "a call", *times, change


def _times(node: _Node) -> str:
    return f"{format_value(node.base, 's')} → {format_value(node.head, 's')}"
