"""Rank the differences between a case's sides by how well they explain why its rows moved. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from perfci.finding import Difference
from perfci.model.report import Comparison

MOST_DIFFERENCES = 20
"""Most differences of a case that a report has."""
_TIMED = {"operator-calls", "operator-tensors", "python-time"}
"""Codes of differences that are timed."""
_AMOUNTS = {
    "operator-calls": ("seconds", "total"),
    "operator-tensors": ("seconds", "total"),
    "operator-kernel": ("seconds", "total"),
    "operator-time": ("before", "after"),
    "python-time": ("before", "after"),
    "start-time": ("before", "after"),
    "compiling-phase": ("before", "after"),
    "import-new": ("gain",),
    "import-gone": ("gain",),
    "import-time": ("before", "after"),
}
"""By code: the arguments of a difference that are times."""
_LIGHT_SHARE = 0.02
"""A timed difference is light below this share of the longest one."""
_MOVED_METRICS = {
    "import_time": ("import_time", "cold_start"),
    "compile_time": ("compile_time", "cold_start"),
    "peak_host_memory": ("peak_host_memory", "host_memory_over_setup"),
    "graph-new": ("graph_breaks", "recompiles", "latency", "compile_time"),
    "graph-gone": ("graph_breaks", "recompiles", "latency", "compile_time"),
}
"""By a difference's code, or else its metric: how the names of the metrics begin that it moves."""


def ranked(
    differences: Iterable[Difference], moved: Sequence[Comparison]
) -> tuple[Difference, ...]:
    """Return the differences, ranked.

    Differences that explain a row of ``moved`` come first. Among equals, those on a changed line
    come first, unless they are light, then those with the most seconds, then the most bytes.
    Differences that have neither stay in their order, which is that of the instruments. A
    difference that isn't exact counts only if it explains a row, because the row was measured in
    many processes. Python's time on a line that calls operators more often belongs to these
    operators, and counts for them, too.
    """
    differences = _with_shares(tuple(differences), moved)

    def explains_a_row(difference: Difference) -> bool:
        return any(explains(difference, row) for row in moved)

    believed = [
        difference for difference in differences if difference.exact or explains_a_row(difference)
    ]
    exact = (
        difference
        for difference in believed
        if difference.exact and (explains_a_row(difference) or not moved)
    )
    longest_s = max((abs(difference.seconds) for difference in exact), default=0.0)
    around: dict[tuple[str, int], float] = {}
    for difference in believed:
        if difference.code == "python-time":
            around[difference.file, difference.line] = difference.seconds

    def weight_s(difference: Difference) -> float:
        of_line = around.get((difference.file, difference.line), 0.0)
        more = of_line if difference.instrument == "operators" else 0.0
        return abs(difference.seconds) + (abs(more) if more * difference.seconds >= 0 else 0.0)

    def is_light(difference: Difference) -> bool:
        return difference.code in _TIMED and weight_s(difference) < _LIGHT_SHARE * longest_s

    def rank(difference: Difference) -> tuple[bool, bool, float, float]:
        return (
            bool(moved) and not explains_a_row(difference),
            not difference.hunk or is_light(difference),
            -weight_s(difference),
            -abs(difference.bytes),
        )

    return tuple(sorted(believed, key=rank)[:MOST_DIFFERENCES])


def _with_shares(
    differences: Sequence[Difference], moved: Sequence[Comparison]
) -> tuple[Difference, ...]:
    """Return the differences with their shares of the smallest change that they explain.

    An instrument itself takes time. So the differences that explain a change are scaled down to it
    if they are larger in sum.
    """
    changes = {id(row): change for row in moved if (change := _change(row))}
    explained: list[int | None] = []
    sums: Counter[int] = Counter()
    for difference in differences:
        rows = [id(row) for row in moved if id(row) in changes and explains(difference, row)]
        row = min(rows, key=changes.__getitem__, default=None)
        explained.append(row)
        if row is not None:
            sums[row] += abs(difference.seconds or difference.bytes)  # type: ignore[assignment]
    return tuple(
        difference
        if row is None
        else _scaled(
            difference, min(1.0, changes[row] / sums[row]) if sums[row] else 1.0, changes[row]
        )
        for difference, row in zip(differences, explained, strict=True)
    )


def _change(row: Comparison) -> float:
    """Return by how much a row's time or memory changed, without sign."""
    centers = [side.center for side in (row.base, row.head) if side and side.center is not None]
    return abs(centers[1] - centers[0]) if len(centers) > 1 and row.unit in {"s", "bytes"} else 0.0


def _scaled(difference: Difference, factor: float, change: float) -> Difference:
    times = {name: difference.arguments[name] for name in _AMOUNTS.get(difference.code, ())}
    return replace(
        difference,
        arguments={
            **difference.arguments, **{name: factor * float(time) for name, time in times.items()}
        },
        seconds=factor * difference.seconds,
        share=factor * abs(difference.seconds or difference.bytes) / change,
    )  # fmt: skip


def leading(
    differences: Sequence[Difference], moved: Iterable[Comparison]
) -> tuple[Difference, ...]:
    """Return the first of ranked differences, and the first that explains each row that moved.

    A difference that goes the other way than its metric's rows, or than all rows if its metric has
    none, is passed over, however large it is.
    """
    rows = tuple(moved)
    leads = [next((each for each in differences if not rows or _fits(each, rows)), None)]
    leads += [
        next((difference for difference in differences if explains(difference, row)), None)
        for row in rows
    ]
    distinct: list[Difference] = []
    for lead in leads:
        if lead is not None and lead not in distinct:
            distinct.append(lead)
    return tuple(distinct)


def _fits(difference: Difference, rows: Sequence[Comparison]) -> bool:
    own = [row for row in rows if _concerns(difference, row)]
    return any(_same_direction(difference, row) for row in own or rows)


def explains(difference: Difference, row: Comparison) -> bool:
    """Say whether a difference moves the row's metric the way that the row moved."""
    return _concerns(difference, row) and _same_direction(difference, row)


def _concerns(difference: Difference, row: Comparison) -> bool:
    metrics = _MOVED_METRICS.get(difference.code) or _MOVED_METRICS.get(difference.metric)
    if not metrics and not difference.metric:
        return False
    beginnings = metrics or (difference.metric,)
    return row.metric.startswith(beginnings)


def _same_direction(difference: Difference, row: Comparison) -> bool:
    """Say whether row and difference moved the same way. A difference without a size goes both."""
    worse = 1 if row.direction == "lower" else -1
    way = -worse if row.status == "improved" else worse
    return (difference.seconds or difference.bytes) * way >= 0


def size(row: Comparison) -> float:
    """Return how large a change is, to order cases by: the logarithm of the ratio, without sign."""
    return 0.0 if row.ratio is None or row.ratio <= 0 else abs(math.log(row.ratio))


def with_hunks(
    differences: Sequence[Difference], changed: Mapping[str, frozenset[int]]
) -> tuple[Difference, ...]:
    """Return the differences, marked if their line is ``changed``, which has lines by file."""
    return tuple(
        replace(difference, hunk=difference.line in changed.get(difference.file, frozenset()))
        if difference.file
        else difference
        for difference in differences
    )
