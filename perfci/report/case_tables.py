"""Tables of one benchmark's modes, in the words that all formats share.

Two modes are compared as unpaired samples: one mode may compile for a minute after another mode's
process has ended. The effect of an ancestor on all modes is in both spreads, which makes intervals
wider.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.report import Comparison, Estimate, Report
from perfci.stats.evidence import bounded_exp, holm
from perfci.stats.t_tests import welch_t
from perfci.units import format_share, format_value

EAGER = "eager"
ALPHA = 0.01
"""Chance that a table recommends a mode that is no faster than eager."""
_ID = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
_AXIS = "mode="
_LATENCY = "latency_p50"
_COLD, _WARM = "compile_time", "compile_time_cached"
_MEMORY = ("peak_device_memory", "peak_host_memory")
_MODE_HEADS = ("mode", "latency", "speed-up", "peak", "compile", "cached", "pays at")

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
    lines: Sequence[tuple[str, ...]]
    advice: str
    changed: bool

    @property
    def title(self) -> str:
        """The case, and what its rows are."""
        return f"{self.case} by mode"


def case_tables(report: Report, *, every: bool = False) -> tuple[CaseTable, ...]:
    """Return the tables to show.

    A comparison shows only tables that changed, unless ``every`` is set.
    """
    every = every or report.is_one_sided
    return tuple(table for table in mode_tables(report.results) if table.changed or every)


def _without_empty(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    kept = [column for column in range(len(heads)) if any(line[column] for line in rows)]
    return [tuple(line[column] for column in kept) for line in (heads, *rows)]


def _moved(by_metric: _ByMetric, metrics: Iterable[str]) -> bool:
    rows = (by_metric[name] for name in metrics if name in by_metric)
    return any(row.status in {"regressed", "improved"} for row in rows)


def _number(by_metric: _ByMetric, metric: str, side: _Side) -> float | None:
    estimate = side(by_metric[metric]) if metric in by_metric else None
    return estimate.center if estimate else None


def _known(value: float | None, unit: str) -> str:
    return "" if value is None else format_value(value, unit)


@dataclass(frozen=True, slots=True)
class _Mode:
    """One side's numbers of a mode. ``p`` is that of its speed-up over eager (1: no evidence)."""

    name: str
    latency: float
    peak: float | None
    cold: float | None
    warm: float | None
    calls: int | None
    speedup: float | None
    lo: float | None
    hi: float | None
    p: float

    @property
    def compiling_s(self) -> float:
        """The time to compile, with an empty cache if that is known. Unknown sorts last."""
        known = (took for took in (self.cold, self.warm) if took is not None)
        return next(known, math.inf)

    @property
    def pays(self) -> str:
        """After how many calls compiling pays."""
        return "" if self.calls is None else f"{self.calls:,}"

    def cells(self) -> tuple[str, ...]:
        """Return the mode's line of the table."""
        gain = "" if self.speedup is None else _times(self.speedup)
        if self.lo is not None and self.hi is not None:
            gain += f" ({_digits(self.lo)}…{_digits(self.hi)})"
        latency, peak = format_value(self.latency, "s"), _known(self.peak, "bytes")
        took = (_known(self.cold, "s"), _known(self.warm, "s"))
        return (self.name, latency, gain, peak, *took, self.pays)


def _times(ratio: float) -> str:
    return f"{_digits(ratio)}×"


def _digits(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10.0 else format_value(ratio, "ratio")


def mode_tables(results: Iterable[Comparison]) -> Iterator[CaseTable]:
    """Yield a table for each benchmark with eager and another mode measured on head."""
    by_case: dict[str, dict[str, dict[str, Comparison]]] = {}
    for row in results:
        if split := without_mode(row.case):
            case, mode = split
            by_case.setdefault(case, {}).setdefault(mode, {})[row.metric] = row
    for case, modes in by_case.items():
        memory = next((name for name in _MEMORY if any(name in of for of in modes.values())), "")
        head, base = (_measured(modes, memory, side) for side in (_HEAD, _BASE))
        if not head:
            continue
        threshold = modes[EAGER][_LATENCY].threshold
        best, before = recommended(head, threshold), recommended(base, threshold)
        watched = (_LATENCY, _COLD, _WARM, memory)
        changed = any(_moved(by_metric, watched) for by_metric in modes.values())
        changed = changed or bool(best and before and best != before)
        advice = _advice(head, best, threshold)
        if before and before != best:
            advice += "; on base " + ("no mode helped" if before == EAGER else f"it was {before}")
        lines = _without_empty(_MODE_HEADS, [mode.cells() for mode in head])
        yield CaseTable(case, lines, advice, changed)


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


def _measured(modes: Mapping[str, _ByMetric], memory: str, side: _Side) -> tuple[_Mode, ...]:
    """Return one side's modes, eager first. Empty unless eager and another mode have a latency."""
    latencies = {mode: _number(by_metric, _LATENCY, side) for mode, by_metric in modes.items()}
    eager = latencies.pop(EAGER, None)
    if not eager or eager < 0.0:
        return ()
    measured = []
    for name, latency in {EAGER: eager, **latencies}.items():
        if not latency or latency < 0.0:
            continue
        by_metric = modes[name]
        cold, warm = (_number(by_metric, metric, side) for metric in (_COLD, _WARM))
        spent = cold if cold is not None else warm
        saves = spent is not None and latency < eager
        gain: tuple[float | None, float | None, float | None, float] = (None, None, None, 1.0)
        if name != EAGER:
            gain = _gain(eager, latency, side(modes[EAGER][_LATENCY]), side(by_metric[_LATENCY]))
        measured.append(
            _Mode(
                name,
                latency,
                _number(by_metric, memory, side),
                cold,
                warm,
                math.ceil(spent / (eager - latency)) if saves and spent is not None else None,
                *gain,
            )
        )
    return tuple(measured) if len(measured) > 1 else ()


def _gain(
    eager_s: float, mode_s: float, eager: Estimate | None, mode: Estimate | None
) -> tuple[float, float | None, float | None, float]:
    """Return a mode's speed-up over eager, its interval, and its p-value."""
    samples = [each.values if each else () for each in (mode, eager)]
    if all(len(values) >= DECIDING_ROUNDS and min(values) > 0.0 for values in samples):
        test = welch_t(*(list(map(math.log, values)) for values in samples))
        if test.estimate is not None and test.lo is not None and test.hi is not None:
            speedup, lo, hi = map(bounded_exp, (test.estimate, test.lo, test.hi))
            return speedup, lo, hi, 1.0 if test.p is None else test.p
    return bounded_exp(math.log(eager_s) - math.log(mode_s)), None, None, 1.0


def recommended(modes: Sequence[_Mode], threshold: float) -> str:
    """Return the mode to use, eager if no mode helps, or "" if that isn't decided.

    A mode helps if its speed-up is significant and reaches the threshold. Of the helping modes
    within the threshold of the fastest, the one that compiles soonest is used. If the intervals of
    all modes end below the threshold, no mode helps.
    """
    enough = 1.0 + threshold
    others = modes[1:]
    adjusted = holm([mode.p for mode in others])
    helping = [
        (mode, mode.speedup)
        for mode, p in zip(others, adjusted, strict=True)
        if p < ALPHA and mode.speedup is not None and mode.speedup >= enough
    ]
    if helping:
        most = max(speedup for _, speedup in helping)
        fast = (mode for mode, speedup in helping if speedup * enough >= most)
        return min(fast, key=attrgetter("compiling_s")).name
    below = others and all(mode.hi is not None and mode.hi < enough for mode in others)
    return EAGER if below else ""


def _advice(modes: Sequence[_Mode], best: str, threshold: float) -> str:
    enough = format_share(threshold)
    if best == EAGER:
        return f"no mode helps: none is {enough} faster than eager"
    if not best:
        return f"not decided: more rounds show whether a mode is {enough} faster than eager"
    mode = next(mode for mode in modes if mode.name == best)
    pays = f", and pays for its compile after {mode.pays} calls" if mode.pays else ""
    return f"use {best}: {_times(mode.speedup or 1.0)} as fast as eager{pays}"
