"""Modes and shapes of one benchmark compared with each other. Pure.

The processes of two modes are unpaired: one is compiled for a minute while another has long ended.
What an ancestor has in common for all modes is in both spreads, and makes intervals wider.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from perfci.model.report import (
    Advice,
    Comparison,
    Estimate,
    ModeMatrix,
    ModeRow,
    ShapeRow,
    ShapeTable,
)
from perfci.model.worker import DECIDING_ROUNDS
from perfci.stats.evidence import bounded_exp
from perfci.stats.levels import holm
from perfci.stats.t_tests import welch_t

EAGER = "eager"
ALPHA = 0.01
"""The chance that a mode is recommended that is no faster: of all modes of a matrix."""
_ID = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
_AXIS = "mode="
_LATENCY = "latency_p50"
_COLD, _WARM = "compile_time", "compile_time_cached"
_MEMORY = ("peak_device_memory", "peak_host_memory")
_MOVED = frozenset({"regressed", "improved"})
_MOST_CALLS = 10**15
MOST_SHAPES = 200
_SHAPE_LATENCY, _COMPILES, _HIT_RATE = "latency_", "compiles_", "shape_hit_rate"
_LABEL = re.compile(r"\d[0-9xd_]*")
"""The end of the names of a shape's metrics, as 8x128, or 8x128_8 for two inputs."""
_SUGGESTIONS = frozenset({"spare-dynamic", "spare-buckets"})


_Side = Callable[[Comparison], Estimate | None]
_Rows = Mapping[str, Mapping[str, Comparison]]
"""A benchmark's comparisons by mode and metric."""


def mode_matrices(results: Iterable[Comparison]) -> tuple[ModeMatrix, ...]:
    """Return a matrix for each benchmark of which head's eager and another mode were measured."""
    by_case: dict[str, dict[str, dict[str, Comparison]]] = {}
    for row in results:
        if split := without_mode(row.case):
            case, mode = split
            by_case.setdefault(case, {}).setdefault(mode, {})[row.metric] = row
    made = (_matrix(case, rows) for case, rows in by_case.items())
    return tuple(matrix for matrix in made if matrix)


def without_mode(case: str) -> tuple[str, str] | None:
    """Return a case's id without its mode, and the mode; None of a case without one."""
    parts = _ID.fullmatch(case)
    axes = parts[2].split(",") if parts else []
    modes = [axis for axis in axes if axis.startswith(_AXIS)]
    if parts is None or len(modes) != 1:
        return None
    axes.remove(modes[0])
    others = f"[{','.join(axes)}]" if axes else ""
    return f"{parts[1]}{others}", modes[0].removeprefix(_AXIS)


def _matrix(case: str, rows: _Rows) -> ModeMatrix | None:
    memory = next((name for name in _MEMORY if any(name in of for of in rows.values())), "")
    head = _measured(rows, memory, lambda row: row.head)
    if not head:
        return None
    threshold = rows[EAGER][_LATENCY].threshold
    gains = _gains(head)
    advice, best = _advised(head, gains, threshold)
    base = _measured(rows, memory, lambda row: row.base)
    before = _advised(base, _gains(base), threshold) if base else None
    watched = (_LATENCY, _COLD, _WARM, memory)
    return ModeMatrix(
        case=case,
        advice=advice,
        best=best,
        threshold=threshold,
        memory=memory,
        rows=tuple(_row(mode, head, gains) for mode in head),
        base_advice=before[0] if before else "",
        base_best=before[1] if before else "",
        moved=tuple(
            mode
            for mode, of in rows.items()
            if any(of[name].status in _MOVED for name in watched if name in of)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Mode:
    """One side's mode. ``latencies`` are those of its workers, without outliers."""

    case: str
    latency: float
    latencies: tuple[float, ...]
    memory: float | None
    compile_time: float | None
    compile_time_cached: float | None


def _measured(rows: _Rows, memory: str, side: _Side) -> dict[str, _Mode]:
    """Return one side's modes, eager first; none where eager, or every other, has no latency."""
    modes: dict[str, _Mode] = {}
    for mode in sorted(rows, key=lambda mode: mode != EAGER):
        of = rows[mode]
        latency = _center(of, _LATENCY, side)
        if latency:
            modes[mode] = _Mode(
                of[_LATENCY].case,
                latency,
                _values(of[_LATENCY], side),
                _center(of, memory, side),
                _center(of, _COLD, side),
                _center(of, _WARM, side),
            )
    return modes if EAGER in modes and len(modes) > 1 else {}


def _center(rows: Mapping[str, Comparison], metric: str, side: _Side) -> float | None:
    """Return a metric's centre, or None where it has no centre above zero."""
    estimate = side(rows[metric]) if metric in rows else None
    center = estimate.center if estimate else None
    return center if center is not None and center > 0.0 else None


def _values(row: Comparison, side: _Side) -> tuple[float, ...]:
    estimate = side(row)
    values = estimate.values if estimate else ()
    kept = tuple(value for at, value in enumerate(values) if at not in row.outliers)
    return kept if all(value > 0.0 for value in kept) else ()


@dataclass(frozen=True, slots=True)
class _Gain:
    """A speed-up over eager; its interval and p are missing where there is no evidence."""

    speedup: float
    lo: float | None = None
    hi: float | None = None
    p: float = 1.0


def _gains(modes: Mapping[str, _Mode]) -> dict[str, _Gain]:
    eager = modes[EAGER]
    return {mode: _gain(eager, of) for mode, of in modes.items() if mode != EAGER}


def _gain(eager: _Mode, mode: _Mode) -> _Gain:
    speedup = bounded_exp(math.log(eager.latency) - math.log(mode.latency))
    if min(len(eager.latencies), len(mode.latencies)) < DECIDING_ROUNDS:
        return _Gain(speedup)
    test = welch_t(list(map(math.log, mode.latencies)), list(map(math.log, eager.latencies)))
    if test.estimate is None or test.lo is None or test.hi is None:
        return _Gain(speedup)
    centre, lo, hi = map(bounded_exp, (test.estimate, test.lo, test.hi))
    return _Gain(centre, lo, hi, 1.0 if test.p is None else test.p)


def _advised(
    modes: Mapping[str, _Mode], gains: Mapping[str, _Gain], threshold: float
) -> tuple[Advice, str]:
    """Return the mode to use: of those that are about as fast as the fastest, the soonest compiled.

    A mode helps whose speed-up is significant and reaches the threshold. None helps where every
    interval ends below it.
    """
    enough = 1.0 + threshold
    adjusted = dict(zip(gains, holm([gain.p for gain in gains.values()]), strict=True))
    helping = {
        mode: gain.speedup
        for mode, gain in gains.items()
        if adjusted[mode] < ALPHA and gain.speedup >= enough
    }
    if helping:
        fast = [mode for mode, gain in helping.items() if gain * enough >= max(helping.values())]
        return "use", min(fast, key=lambda mode: _compiling(modes[mode]))
    if all(gain.hi is not None and gain.hi < enough for gain in gains.values()):
        return "none", EAGER
    return "undecided", ""


def _compiling(mode: _Mode) -> float:
    known = (mode.compile_time, mode.compile_time_cached)
    return next((took for took in known if took is not None), math.inf)


def _row(mode: str, modes: Mapping[str, _Mode], gains: Mapping[str, _Gain]) -> ModeRow:
    of, gain = modes[mode], gains.get(mode)
    saved = modes[EAGER].latency - of.latency
    return ModeRow(
        mode=mode,
        case=of.case,
        latency=of.latency,
        speedup=gain.speedup if gain else None,
        speedup_lo=gain.lo if gain else None,
        speedup_hi=gain.hi if gain else None,
        peak_memory=of.memory,
        compile_time=of.compile_time,
        compile_time_cached=of.compile_time_cached,
        pays_after=_calls(of.compile_time, saved),
        pays_after_cached=_calls(of.compile_time_cached, saved),
    )


def _calls(spent: float | None, saved: float) -> int | None:
    """Return the calls that make good what compiling took; None where calls aren't faster."""
    if spent is None or saved <= 0.0:
        return None
    return math.ceil(min(spent / saved, _MOST_CALLS))


def shape_tables(results: Iterable[Comparison]) -> tuple[ShapeTable, ...]:
    """Return a table for each case that measured two shapes or more."""
    by_case: dict[str, dict[str, Comparison]] = {}
    for row in results:
        by_case.setdefault(row.case, {})[row.metric] = row
    made = (_table(case, rows) for case, rows in by_case.items())
    return tuple(table for table in made if table)


def _table(case: str, rows: Mapping[str, Comparison]) -> ShapeTable | None:
    labels = [
        name.removeprefix(_SHAPE_LATENCY)
        for name in rows
        if name.startswith(_SHAPE_LATENCY) and _LABEL.fullmatch(name.removeprefix(_SHAPE_LATENCY))
    ]
    if len(labels) < 2:
        return None
    labels = sorted(labels, key=_sizes)[:MOST_SHAPES]
    rate = rows.get(_HIT_RATE)
    return ShapeTable(
        case=case,
        rows=tuple(_shape_row(label, rows) for label in labels),
        hit_rate=_shape_center(rate.head) if rate else None,
        base_hit_rate=_shape_center(rate.base) if rate else None,
        suggestion=next(
            (
                finding
                for finding in (rate.findings if rate else ())
                if finding.code in _SUGGESTIONS
            ),
            None,
        ),
        moved=tuple(
            label
            for label in labels
            if any(
                name in rows and rows[name].status in _MOVED
                for name in (_SHAPE_LATENCY + label, _COMPILES + label)
            )
        ),
    )


def _sizes(label: str) -> list[int]:
    return [int(size) for size in re.findall(r"\d+", label)]


def _shape_row(label: str, rows: Mapping[str, Comparison]) -> ShapeRow:
    latency, compiles = rows[_SHAPE_LATENCY + label], rows.get(_COMPILES + label)
    guards = (
        str(finding.arguments["guard"])
        for finding in (compiles.findings if compiles else ())
        if finding.code == "guard-failed"
    )
    return ShapeRow(
        shape=label,
        latency=_shape_center(latency.head),
        base_latency=_shape_center(latency.base),
        ratio=latency.ratio,
        ratio_lo=latency.ratio_lo,
        ratio_hi=latency.ratio_hi,
        compiles=_shape_center(compiles.head) if compiles else None,
        base_compiles=_shape_center(compiles.base) if compiles else None,
        guard=next(guards, ""),
    )


def _shape_center(estimate: Estimate | None) -> float | None:
    return estimate.center if estimate else None
