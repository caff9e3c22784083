"""The drawings that a comparison's page and a trend's site share, and flame graphs.

Numbers are packed for the scripts that draw them. A box of a flame graph is as wide as its
function's mean time over both sides: so no box is wider than the box that it stands on, and a
function that one side lacks has a box, too. Its colour shows how much more or less head takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from perfci.model.finding import Stack, Why
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
"""These occur in JSON only inside strings, so that bytes can be replaced."""
_CHART_DIGITS = 5
"""A value is right to 1/100,000 of the typical one: no chart shows less."""
_LARGEST = 2.0**52
"""A browser's numbers count every whole number up to here."""
_LEAST_SCALE = 1e-300
_SPARK = (120.0, 30.0)
_EDGE = 2.0
WIDTH, ROW = 1000.0, 20
_NARROWEST = 4.0
"""Least width of a box. A narrower box is left out; its time is in the box below."""
_CHARACTER = 6.6
"""Width of a label's character."""
_DEEPEST, _MOST_LINES = 40, 12
_SLIGHT, _MUCH = 0.02, 0.10
"""Shares of base's call that colour a box."""


def literal(value: Any) -> bytes:
    """Return ``value`` as JSON that may stand in a script element of a page."""
    import msgspec

    encoded: bytes = msgspec.json.encode(value, enc_hook=float)  # numpy's numbers are not Python's
    for character, spelled in _ENTITIES.items():
        encoded = encoded.replace(character, spelled)
    return encoded


@dataclass(frozen=True, slots=True)
class Packed:
    """``value[i] = scale * (deltas[0] + … + deltas[i])``."""

    scale: float
    deltas: list[int]


def pack(values: NDArray[Any], scale: float | None = None) -> Packed:
    """Pack finite ``values`` (n,), by ``scale`` or by one that suits them."""
    import numpy as np

    if not len(values):
        return Packed(1.0, [])
    if scale is None:
        scale = scale_of(values)
    whole = np.rint(values / scale).astype(np.int64)
    whole[1:] -= whole[:-1].copy()
    return Packed(scale, whole.tolist())


def scale_of(values: NDArray[Any]) -> float:
    """Return the step for ``values``: 1 where all are whole, else by the typical value's digits."""
    import numpy as np

    sizes = np.abs(values)
    largest = float(sizes.max())
    if largest < _LARGEST and bool((values == np.rint(values)).all()):
        return 1.0
    middle = len(sizes) // 2  # np.median takes four times as long for the same
    ordered = np.partition(sizes / 4.0, (max(0, middle - 1), middle))  # a sum of two may be none
    lower = middle if len(sizes) % 2 else middle - 1
    typical = 2.0 * float(ordered[lower] + ordered[middle]) or largest
    digits = 10.0 ** max(math.floor(math.log10(typical)) - _CHART_DIGITS, -300)
    return max(digits, largest / _LARGEST, _LEAST_SCALE)


@dataclass(frozen=True, slots=True)
class Spark:
    """``path`` for SVG's ``d``. ``marks`` are x positions of changes. ``width`` × ``height``."""

    path: str
    marks: tuple[float, ...]
    width: float
    height: float


def spark(
    values: NDArray[Any], marks: tuple[int, ...] = (), size: tuple[float, float] = _SPARK
) -> Spark:
    """Draw finite ``values`` (n,): a point for two pixels, each the median of its share.

    The outermost 2 % don't decide the height: one outlier would make a flat line of the rest.
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
    """One function below its callers. ``shade`` is its class. ``label`` fits into it."""

    x: float
    y: int
    width: float
    label: str
    title: str
    shade: str


@dataclass(frozen=True, slots=True)
class Flame:
    """A case's flame graph, and the functions whose own time moved most, as a table has them."""

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
        for name in ("", *stack.frames[:_DEEPEST]):
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
    """Yield the functions and operators whose own time differs most: name, base, head, change."""
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
