"""Tables of one benchmark's modes, and of a case's shapes: as records, and in words.

Two modes are compared as unpaired samples: one mode may compile for a minute after another mode's
process has ended. The effect of an ancestor on all modes is in both spreads, which makes intervals
wider. All formats share the words. ``docs/reference/fields.toml`` explains the records' fields.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal

from perfci.model.finding import Finding
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.report import Comparison, Estimate, Report
from perfci.model.words import words
from perfci.stats.evidence import bounded_exp, holm
from perfci.stats.t_tests import welch_t
from perfci.units import format_change, format_interval, format_share, format_value

EAGER = "eager"
ALPHA = 0.01
"""Chance that a matrix recommends a mode that is no faster than eager."""
MOST_SHAPES = 200
_ID = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
_AXIS = "mode="
_LATENCY = "latency_p50"
_COLD, _WARM = "compile_time", "compile_time_cached"
_MEMORY = ("peak_device_memory", "peak_host_memory")
_MOST_CALLS = 10**15
"""Largest number of calls until compiling pays that is reported."""
_SHAPE_LATENCY, _COMPILES, _HIT_RATE = "latency_", "compiles_", "shape_hit_rate"
_LABEL = re.compile(r"\d[0-9xd_]*")
"""A shape's label, which ends the names of its metrics: 8x128, or 8x128_8 for two inputs."""
_SUGGESTIONS = frozenset({"spare-dynamic", "spare-buckets"})
_GUARD = "guard that failed"
_MODE_HEADS = ("mode", "latency", "speed-up", "peak", "compile", "cached", "pays at")
_SHAPE_HEADS = ("shape", "latency", "change", "compiles", _GUARD)

Advice = Literal["use", "none", "undecided"]
_Side = Callable[[Comparison], Estimate | None]
_BASE: _Side = attrgetter("base")
_HEAD: _Side = attrgetter("head")
_ByMetric = Mapping[str, Comparison]
"""A case's comparisons by metric."""


@dataclass(frozen=True, slots=True)
class CaseTable:
    """A table of one case, in words. Empty columns are left out.

    ``lines`` has the heads first, then the rows. ``changed``: a row moved, or the advice differs
    from base's.
    """

    case: str
    what: str
    lines: Sequence[tuple[str, ...]]
    advice: str
    changed: bool

    @property
    def title(self) -> str:
        """The case, and what its rows are."""
        return f"{self.case} by {self.what}"

    @property
    def has_texts(self) -> bool:
        """True if the last column has words. The columns between it and the first have numbers."""
        return self.lines[0][-1] == _GUARD


@dataclass(frozen=True, slots=True)
class ModeRow:
    """One mode of head."""

    mode: str
    case: str
    latency: float
    speedup: float | None = None
    speedup_lo: float | None = None
    speedup_hi: float | None = None
    peak_memory: float | None = None
    compile_time: float | None = None
    compile_time_cached: float | None = None
    pays_after: int | None = None
    pays_after_cached: int | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the mode's line of the table."""
        gain = "" if self.speedup is None else _times(self.speedup)
        if self.speedup_lo is not None and self.speedup_hi is not None:
            gain += f" ({_digits(self.speedup_lo)}…{_digits(self.speedup_hi)})"
        return (
            self.mode,
            format_value(self.latency, "s"),
            gain,
            _known(self.peak_memory, "bytes"),
            _known(self.compile_time, "s"),
            _known(self.compile_time_cached, "s"),
            self.pays(),
        )

    def pays(self) -> str:
        """Return after how many calls compiling pays: with an empty cache if known, else warm."""
        calls = self.pays_after if self.pays_after is not None else self.pays_after_cached
        return "" if calls is None else f"{calls:,}"


@dataclass(frozen=True, slots=True)
class ModeMatrix:
    """The modes of a benchmark, eager first."""

    case: str
    advice: Advice
    best: str
    threshold: float
    memory: str
    rows: tuple[ModeRow, ...]
    base_advice: Advice | Literal[""] = ""
    base_best: str = ""
    moved: tuple[str, ...] = ()

    def table(self) -> CaseTable:
        """Return the matrix in words. It changed if a row moved or the advice isn't base's."""
        decided = self.advice != "undecided" and self.base_advice in {"use", "none"}
        changed = bool(self.moved) or (decided and self.best != self.base_best)
        lines = _without_empty(_MODE_HEADS, (row.cells() for row in self.rows))
        return CaseTable(self.case, "mode", lines, self._advice(), changed)

    def _advice(self) -> str:
        """Return the recommendation, and base's recommendation if it was different."""
        enough = format_share(self.threshold)
        if self.advice == "none":
            advice = f"no mode helps: none is {enough} faster than eager"
        elif self.advice == "undecided":
            advice = f"not decided: more rounds show whether a mode is {enough} faster than eager"
        else:
            row = next(row for row in self.rows if row.mode == self.best)
            pays = f", and pays for its compile after {row.pays()} calls" if row.pays() else ""
            advice = f"use {row.mode}: {_times(row.speedup or 1.0)} as fast as eager{pays}"
        if (self.base_advice, self.base_best) == (self.advice, self.best):
            return advice
        before = {"use": f"it was {self.base_best}", "none": "no mode helped"}.get(self.base_advice)
        return f"{advice}; on base {before}" if before else advice


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """One shape of head."""

    shape: str
    latency: float | None
    base_latency: float | None = None
    ratio: float | None = None
    ratio_lo: float | None = None
    ratio_hi: float | None = None
    compiles: float | None = None
    base_compiles: float | None = None
    guard: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the shape's line of the table."""
        change = "" if self.ratio is None else format_change(self.ratio)
        if change and None not in (self.ratio_lo, self.ratio_hi) and self.ratio_lo != self.ratio_hi:
            change += f" ({format_interval(self.ratio_lo, self.ratio_hi, like=self.ratio)})"
        compiles = _known(self.compiles, "count")
        if compiles and self.base_compiles not in (None, self.compiles):
            compiles = f"{format_value(self.base_compiles, 'count')} → {compiles}"
        shape = self.shape.replace("_", ", ")
        return (shape, _known(self.latency, "s"), change, compiles, self.guard)


@dataclass(frozen=True, slots=True)
class ShapeTable:
    """The shapes of a case, the smallest sizes first."""

    case: str
    rows: tuple[ShapeRow, ...]
    hit_rate: float | None = None
    base_hit_rate: float | None = None
    suggestion: Finding | None = None
    moved: tuple[str, ...] = ()

    def table(self) -> CaseTable:
        """Return the shapes in words, with the hit rate and a suggestion that may spare compiles.

        The table changed if a row moved or the hit rate isn't base's.
        """
        rates = (self.hit_rate, self.base_hit_rate)
        other_rate = None not in rates and self.hit_rate != self.base_hit_rate
        parts = []
        if self.hit_rate is not None:
            share = format_share(self.hit_rate)
            before = f"; on base {format_share(self.base_hit_rate)}" if other_rate else ""
            parts.append(f"code compiled for another shape served {share} of the shapes{before}")
        if self.suggestion:
            parts.append(words(self.suggestion))
        lines = _without_empty(_SHAPE_HEADS, (row.cells() for row in self.rows))
        return CaseTable(
            self.case, "shape", lines, "; ".join(parts), bool(self.moved) or other_rate
        )


def case_tables(report: Report, *, every: bool = False) -> dict[str, tuple[CaseTable, ...]]:
    """Return the tables to show, by ``modes`` and ``shapes``.

    A comparison shows only tables that changed, unless ``every`` is set.
    """
    made: dict[str, Iterable[ModeMatrix | ShapeTable]] = {
        "modes": mode_matrices(report.results),
        "shapes": shape_tables(report.results),
    }
    every = every or report.is_one_sided
    return {
        name: tuple(table for each in of_kind if (table := each.table()).changed or every)
        for name, of_kind in made.items()
    }


def _without_empty(
    heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    lines = list(rows)
    kept = [column for column in range(len(heads)) if any(line[column] for line in lines)]
    return [tuple(line[column] for column in kept) for line in (heads, *lines)]


def _times(ratio: float) -> str:
    return f"{_digits(ratio)}×"


def _digits(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10.0 else format_value(ratio, "ratio")


def _known(value: float | None, unit: str) -> str:
    return "" if value is None else format_value(value, unit)


def mode_matrices(results: Iterable[Comparison]) -> tuple[ModeMatrix, ...]:
    """Return a matrix for each benchmark with eager and another mode measured on head."""
    by_case: dict[str, dict[str, dict[str, Comparison]]] = {}
    for row in results:
        if split := without_mode(row.case):
            case, mode = split
            by_case.setdefault(case, {}).setdefault(mode, {})[row.metric] = row
    made = (_matrix(case, rows) for case, rows in by_case.items())
    return tuple(matrix for matrix in made if matrix)


def without_mode(case: str) -> tuple[str, str] | None:
    """Return a case's id without its mode, and the mode; None for a case without a mode."""
    parts = _ID.fullmatch(case)
    axes = parts[2].split(",") if parts else []
    modes = [axis for axis in axes if axis.startswith(_AXIS)]
    if parts is None or len(modes) != 1:
        return None
    axes.remove(modes[0])
    others = f"[{','.join(axes)}]" if axes else ""
    return f"{parts[1]}{others}", modes[0].removeprefix(_AXIS)


def _matrix(case: str, modes: Mapping[str, _ByMetric]) -> ModeMatrix | None:
    memory = next(
        (name for name in _MEMORY if any(name in by_metric for by_metric in modes.values())), ""
    )
    head = _measured(modes, memory, _HEAD)
    if not head:
        return None
    threshold = modes[EAGER][_LATENCY].threshold
    advice, best = _advised(head, threshold)
    base = _measured(modes, memory, _BASE)
    before = _advised(base, threshold) if base else None
    watched = (_LATENCY, _COLD, _WARM, memory)
    return ModeMatrix(
        case=case,
        advice=advice,
        best=best,
        threshold=threshold,
        memory=memory,
        rows=tuple(row for row, _ in head.values()),
        base_advice=before[0] if before else "",
        base_best=before[1] if before else "",
        moved=tuple(mode for mode, by_metric in modes.items() if _moved(by_metric, watched)),
    )


def _moved(by_metric: _ByMetric, metrics: Iterable[str]) -> bool:
    rows = (by_metric[name] for name in metrics if name in by_metric)
    return any(row.status in {"regressed", "improved"} for row in rows)


def _measured(
    modes: Mapping[str, _ByMetric], memory: str, side: _Side
) -> dict[str, tuple[ModeRow, float]]:
    """Return one side's modes, eager first, each with the p-value of its speed-up.

    Empty if eager has no latency, or if no other mode has one.
    """
    latencies = {mode: _center(by_metric, _LATENCY, side) for mode, by_metric in modes.items()}
    eager = latencies.pop(EAGER, None)
    if not eager or not any(latencies.values()):
        return {}
    measured = {}
    for mode, latency in {EAGER: eager, **latencies}.items():
        if latency:
            by_metric = modes[mode]
            cold, warm = (_center(by_metric, metric, side) for metric in (_COLD, _WARM))
            row = ModeRow(
                mode=mode,
                case=by_metric[_LATENCY].case,
                latency=latency,
                peak_memory=_center(by_metric, memory, side),
                compile_time=cold,
                compile_time_cached=warm,
                pays_after=_calls(cold, eager - latency),
                pays_after_cached=_calls(warm, eager - latency),
            )
            values = [_values(modes[each][_LATENCY], side) for each in (EAGER, mode)]
            measured[mode] = (row, 1.0) if mode == EAGER else _with_gain(row, eager, *values)
    return measured


def _center(by_metric: _ByMetric, metric: str, side: _Side) -> float | None:
    """Return the centre of ``metric`` on one side. None if missing or not above zero."""
    center = _number(by_metric.get(metric), side)
    return center if center is not None and center > 0.0 else None


def _values(row: Comparison, side: _Side) -> tuple[float, ...]:
    """Return one side's values. Empty unless all are above zero, as logarithms are taken."""
    estimate = side(row)
    values = estimate.values if estimate else ()
    return values if all(value > 0.0 for value in values) else ()


def _calls(spent: float | None, saved: float) -> int | None:
    """Return how many calls save the time that compiling took. None if calls aren't faster."""
    if spent is None or saved <= 0.0:
        return None
    return math.ceil(min(spent / saved, _MOST_CALLS))


def _with_gain(
    row: ModeRow, eager: float, of_eager: Sequence[float], of_mode: Sequence[float]
) -> tuple[ModeRow, float]:
    """Return ``row`` with its speed-up over eager, and the speed-up's p-value (1: no evidence)."""
    if min(len(of_eager), len(of_mode)) >= DECIDING_ROUNDS:
        test = welch_t(list(map(math.log, of_mode)), list(map(math.log, of_eager)))
        if test.estimate is not None and test.lo is not None and test.hi is not None:
            speedup, lo, hi = map(bounded_exp, (test.estimate, test.lo, test.hi))
            p = 1.0 if test.p is None else test.p
            return replace(row, speedup=speedup, speedup_lo=lo, speedup_hi=hi), p
    return replace(row, speedup=bounded_exp(math.log(eager) - math.log(row.latency))), 1.0


def _advised(measured: Mapping[str, tuple[ModeRow, float]], threshold: float) -> tuple[Advice, str]:
    """Return the advice, and the mode to use.

    A mode helps if its speed-up is significant and reaches the threshold. Of the helping modes
    within the threshold of the fastest, the one that compiles soonest is used. If the intervals of
    all modes end below the threshold, no mode helps.
    """
    enough = 1.0 + threshold
    others = [row_and_p for mode, row_and_p in measured.items() if mode != EAGER]
    adjusted = holm([p for _, p in others])
    helping = [
        (row, row.speedup)
        for (row, _), p in zip(others, adjusted, strict=True)
        if p < ALPHA and row.speedup is not None and row.speedup >= enough
    ]
    if helping:
        most = max(speedup for _, speedup in helping)
        return "use", min(
            (row for row, speedup in helping if speedup * enough >= most), key=_compiling
        ).mode
    if all(row.speedup_hi is not None and row.speedup_hi < enough for row, _ in others):
        return "none", EAGER
    return "undecided", ""


def _compiling(row: ModeRow) -> float:
    """Return the mode's compile time in s, with an empty cache if known. Unknown sorts last."""
    known = (row.compile_time, row.compile_time_cached)
    return next((took for took in known if took is not None), math.inf)


def shape_tables(results: Iterable[Comparison]) -> tuple[ShapeTable, ...]:
    """Return a table for each case that measured two shapes or more."""
    by_case: dict[str, dict[str, Comparison]] = {}
    for row in results:
        by_case.setdefault(row.case, {})[row.metric] = row
    made = (_shapes(case, rows) for case, rows in by_case.items())
    return tuple(table for table in made if table)


def _shapes(case: str, by_metric: _ByMetric) -> ShapeTable | None:
    names = (
        name.removeprefix(_SHAPE_LATENCY) for name in by_metric if name.startswith(_SHAPE_LATENCY)
    )
    labels = sorted(filter(_LABEL.fullmatch, names), key=_sizes)[:MOST_SHAPES]
    if len(labels) < 2:
        return None
    rate = by_metric.get(_HIT_RATE)
    suggestions = (each for each in (rate.findings if rate else ()) if each.code in _SUGGESTIONS)
    return ShapeTable(
        case=case,
        rows=tuple(_shape_row(label, by_metric) for label in labels),
        hit_rate=_number(rate, _HEAD),
        base_hit_rate=_number(rate, _BASE),
        suggestion=next(suggestions, None),
        moved=tuple(
            label
            for label in labels
            if _moved(by_metric, (_SHAPE_LATENCY + label, _COMPILES + label))
        ),
    )


def _sizes(label: str) -> list[int]:
    return [int(size) for size in re.findall(r"\d+", label)]


def _shape_row(label: str, by_metric: _ByMetric) -> ShapeRow:
    latency, compiles = by_metric[_SHAPE_LATENCY + label], by_metric.get(_COMPILES + label)
    guards = (
        str(finding.arguments["guard"])
        for finding in (compiles.findings if compiles else ())
        if finding.code == "guard-failed"
    )
    return ShapeRow(
        shape=label,
        latency=_number(latency, _HEAD),
        base_latency=_number(latency, _BASE),
        ratio=latency.ratio,
        ratio_lo=latency.ratio_lo,
        ratio_hi=latency.ratio_hi,
        compiles=_number(compiles, _HEAD),
        base_compiles=_number(compiles, _BASE),
        guard=next(guards, ""),
    )


def _number(row: Comparison | None, side: _Side) -> float | None:
    estimate = side(row) if row else None
    return estimate.center if estimate else None
