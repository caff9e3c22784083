"""Shapes of one benchmark beside each other, made of its rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from perfci.model.report import Comparison, Estimate
from perfci.model.shapes import ShapeRow, ShapeTable

MOST_SHAPES = 200
_LATENCY, _COMPILES, _HIT_RATE = "latency_", "compiles_", "shape_hit_rate"
_LABEL = re.compile(r"\d[0-9xd_]*")
"""What follows in the names of the metrics of one shape: 8x128, or 8x128_8 of two inputs."""
_SUGGESTIONS = frozenset({"spare-dynamic", "spare-buckets"})
_MOVED = frozenset({"regressed", "improved"})


def shape_tables(results: Iterable[Comparison]) -> tuple[ShapeTable, ...]:
    """Return a table for each case that measured two shapes or more."""
    found: dict[str, dict[str, Comparison]] = {}
    for row in results:
        found.setdefault(row.case, {})[row.metric] = row
    made = (_table(case, rows) for case, rows in found.items())
    return tuple(table for table in made if table)


def _table(case: str, rows: Mapping[str, Comparison]) -> ShapeTable | None:
    labels = [
        name.removeprefix(_LATENCY)
        for name in rows
        if name.startswith(_LATENCY) and _LABEL.fullmatch(name.removeprefix(_LATENCY))
    ]
    if len(labels) < 2:
        return None
    labels = sorted(labels, key=_sizes)[:MOST_SHAPES]
    rate = rows.get(_HIT_RATE)
    return ShapeTable(
        case=case,
        rows=tuple(_row(label, rows) for label in labels),
        hit_rate=_center(rate.head) if rate else None,
        base_hit_rate=_center(rate.base) if rate else None,
        suggestion=next(
            (one for one in (rate.findings if rate else ()) if one.code in _SUGGESTIONS), None
        ),
        moved=tuple(
            label
            for label in labels
            if any(
                name in rows and rows[name].status in _MOVED
                for name in (_LATENCY + label, _COMPILES + label)
            )
        ),
    )


def _sizes(label: str) -> list[int]:
    return [int(size) for size in re.findall(r"\d+", label)]


def _row(label: str, rows: Mapping[str, Comparison]) -> ShapeRow:
    latency, compiles = rows[_LATENCY + label], rows.get(_COMPILES + label)
    guards = (
        str(one.arguments["guard"])
        for one in (compiles.findings if compiles else ())
        if one.code == "guard-failed"
    )
    return ShapeRow(
        shape=label,
        latency=_center(latency.head),
        base_latency=_center(latency.base),
        ratio=latency.ratio,
        ratio_lo=latency.ratio_lo,
        ratio_hi=latency.ratio_hi,
        compiles=_center(compiles.head) if compiles else None,
        base_compiles=_center(compiles.base) if compiles else None,
        guard=next(guards, ""),
    )


def _center(estimate: Estimate | None) -> float | None:
    return estimate.center if estimate else None
