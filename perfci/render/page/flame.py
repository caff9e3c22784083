"""Where both sides' calls spend their time on the host, as one flame graph of their difference.

A box is as wide as its function's mean time over both sides, so that no box is wider than what it
stands on, and one that a side lacks is there. Its colour is what head takes more or less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from perfci.model.why import Stack, Why
from perfci.render.clean import clean_line
from perfci.units import format_value

WIDTH, ROW = 1000.0, 20
_NARROWEST = 4.0
"""A narrower box shows nothing; its time is in the box below."""
_CHARACTER = 6.6
_DEEPEST, _MOST_LINES = 40, 12
_SLIGHT, _MUCH = 0.02, 0.10
"""Shares of base's call that colour a box."""


@dataclass(frozen=True, slots=True)
class Box:
    """One function below its callers. ``shade`` is its class; ``label`` fits into it."""

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
    """Return a case's flame graph; None where nothing was sampled."""
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
        for one in sorted(node.below.values(), key=lambda one: one.name):
            waiting.append((one, x, depth + 1))
            x += (one.base + one.head) * scale


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
    most = sorted(own.values(), key=lambda one: -abs(one.head - one.base))
    for node in most[:_MOST_LINES]:
        gain = node.head - node.base
        change = f"{'+' if gain >= 0 else '-'}{format_value(abs(gain), 's')}"
        times = (format_value(node.base, "s"), format_value(node.head, "s"))
        yield clean_line(node.name, 200) or "a call", *times, change


def _times(node: _Node) -> str:
    return f"{format_value(node.base, 's')} → {format_value(node.head, 's')}"
