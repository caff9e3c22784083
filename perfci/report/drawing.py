"""The drawings of a comparison's page: rows, strips, flame graphs, and their words.

A box is as wide as its function's mean time over both sides, so that no box is wider than what it
stands on, and one that a side lacks is there. Its colour is what head takes more or less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfci.model.finding import Stack, Why
from perfci.model.report import Comparison, Estimate, Report
from perfci.model.status import traits
from perfci.report.clean import clean_line
from perfci.report.rows import (
    change_text,
    detectable_text,
    effect_text,
    freedom_text,
    has_numbers,
    interval_text,
    measured_text,
    note,
    p_text,
    replay_command,
    selection_of,
    side_text,
)
from perfci.report.site.data import pack
from perfci.stats.quantile import median
from perfci.units import counted, format_share, format_value
from perfci.verdict.caveats import Cause, cause_of
from perfci.verdict.policy import margin

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST_NOTE = 600
_PAIRED, _UNPAIRED = 1, 0
_RATIO, _DIFFERENCE = 0, 1
_SENSES = {"worse": 1, "better": -1, "steady": 0}
WIDTH, ROW = 1000.0, 20
_NARROWEST = 4.0
"""A narrower box shows nothing. Its time is in the box below."""
_CHARACTER = 6.6
_DEEPEST, _MOST_LINES = 40, 12
_SLIGHT, _MUCH = 0.02, 0.10
"""Shares of base's call that colour a box."""
BLAME: dict[Cause, str] = {
    "code": "what differs between the sides",
    "noise": "variance between processes",
    "machine": "something else ran, or the machine throttled",
    "method": "how it was measured: too little, too coarse, or not alike",
}
"""The meaning of each cause. The empty one has none."""
_TESTS = {
    "paired_t": "paired t, of each round's two processes",
    "welch_t": "Welch's t, of unpaired processes",
    "exact": "none: all processes of a side agree",
    "same_code": "none: both sides are the same code",
}
_GATES = {"fail": "fails the report", "warn": "warns", "info": "informs"}
_STEADY, _WINDOW = 1.1, 5
"""Steady is the first call from which the median of ``_WINDOW`` calls is within 10 % of warm."""


class Texts:
    """Texts by number: most notes and facts are those of many rows."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._seen: dict[tuple[str, int], int] = {}

    def place(self, text: str, limit: int = 300) -> int:
        """Return the number of ``text``, made visible."""
        if (known := self._seen.get((text, limit))) is not None:
            return known
        place = self._places.setdefault(clean_line(text, limit), len(self._places))
        self._seen[text, limit] = place
        return place

    @property
    def every(self) -> list[str]:
        """All texts, by number."""
        return list(self._places)


def payload(report: Report) -> dict[str, Any]:
    """Return what the scripts need: the rows as lists, in the report's order, and their texts."""
    texts = Texts()
    rows = report.results
    statuses = list(dict.fromkeys(row.status for row in rows))
    statuses.sort(key=lambda status: traits(status).rank)
    metrics = list(dict.fromkeys((row.metric, row.unit) for row in rows))
    same_code = frozenset(report.same_code)
    causes = list(dict.fromkeys(cause_of(row, same_code) for row in rows))
    return {
        "metrics": [[clean_line(name, 100), clean_line(unit, 30)] for name, unit in metrics],
        "statuses": [status.replace("_", " ") for status in statuses],
        "causes": causes,
        "replay": replay_command(report),
        "rows": [
            [
                texts.place(row.case),
                metrics.index((row.metric, row.unit)) if has_numbers(row) else -1,
                statuses.index(row.status),
                causes.index(cause_of(row, same_code)),
                _sense(row),
                texts.place(change_text(row)),
                texts.place(interval_text(row)),
                texts.place(side_text(row.base, row.unit)),
                texts.place(side_text(row.head, row.unit)),
                texts.place(note(row), _LONGEST_NOTE),
                [texts.place(text) for fact in facts(row) for text in fact],
                texts.place(selection_of(row.case), 2000),
                _change(row),
                [_values(side) for side in (row.base, row.head)],
                list(row.outliers),
                _PAIRED if row.method == "paired_t" else _UNPAIRED,
            ]
            for row in rows
        ],
        "texts": texts.every,
    }


def _sense(row: Comparison) -> int:
    """Return 1 for worse, -1 for better, 0 for neither."""
    return _SENSES[traits(row.status).sense]


def _change(row: Comparison) -> list[Any] | None:
    """Return the change, its interval and the margin: ratios, or differences in the unit."""
    if row.difference is not None:
        ends = (row.difference_lo, row.difference_hi, -row.threshold, row.threshold)
        return [_DIFFERENCE, row.difference, *map(_short, ends)]
    if row.ratio is None:
        return None
    return [_RATIO, *map(_short, (row.ratio, row.ratio_lo, row.ratio_hi, *margin(row.threshold)))]


def _values(side: Estimate | None) -> list[Any] | None:
    """Return a side's centre, its workers' values, its calls' quantiles and first calls, packed."""
    if side is None or side.center is None:
        return None
    drawn = (side.values, side.quantiles, side.first_calls)
    return [_short(side.center), *(_packed(values) for values in drawn)]


def _packed(values: Sequence[float]) -> list[Any]:
    import numpy as np

    array: NDArray[Any] = np.asarray(values, dtype=float)
    packed = pack(array)
    return [packed.scale, *packed.deltas] if len(array) else []


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")


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
    """Return a case's flame graph, or None where nothing was sampled."""
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
        gain = node.head - node.base
        change = f"{'+' if gain >= 0 else '-'}{format_value(abs(gain), 's')}"
        times = (format_value(node.base, "s"), format_value(node.head, "s"))
        yield clean_line(node.name, 200) or "a call", *times, change


def _times(node: _Node) -> str:
    return f"{format_value(node.base, 's')} → {format_value(node.head, 's')}"


def _steady_text(side: Estimate) -> str:
    """Return from which call on a process is warm, or that none of those kept is."""
    calls, warm = side.first_calls, _STEADY * (side.center or 0.0)
    windows = (calls[at : at + _WINDOW] for at in range(max(1, len(calls) - _WINDOW + 1)))
    first = next(
        (at for at, of in enumerate(windows, 1) if max(of[0], median(of)) <= warm),
        None,
    )
    return f"none of the first {len(calls)}" if first is None else str(first)


def facts(row: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what stands behind a row's numbers, as terms with their values."""
    if row.method in _TESTS:
        yield "Test", _TESTS[row.method]
    if measured := measured_text(row):
        yield "Measured", measured
    if row.df is not None:
        yield "Degrees of freedom", freedom_text(row)
    steady = [_steady_text(side) for side in (row.base, row.head) if side and side.first_calls]
    if steady:
        yield "Steady from call", " → ".join(steady)
    if row.p is not None:
        adjusted = "" if row.p_adjusted is None else f", {p_text(row.p_adjusted)} adjusted"
        yield "p", f"{p_text(row.p)}{adjusted}"
    if row.cohens_d is not None:
        yield "Cohen's d", effect_text(row)
    if row.detectable is not None:
        yield "Could detect", detectable_text(row)
    limit = format_value(row.threshold, row.unit)
    yield "Threshold", limit if row.difference is not None else format_share(row.threshold)
    yield "Gate", _GATES[row.gate]
    if row.rounds_set_aside:
        yield "Excluded rounds", f"{counted(row.rounds_set_aside, 'outlier')}, in no figure"
    if row.disturbance:
        yield "Disturbed by", row.disturbance
