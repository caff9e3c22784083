"""Tables of one benchmark's modes, in the words that all formats share.

Two modes are compared as unpaired samples: one mode may compile for a minute after another mode's
process has ended. The effect of a fork server on all modes is in both spreads, which makes
intervals wider.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.report import Comparison
from perfci.stats.evidence import bounded_exp, holm
from perfci.stats.t_tests import welch_t
from perfci.units import format_share, format_value

EAGER = "eager"
ALPHA = 0.01
"""Chance that a table recommends a mode that is not faster than eager."""
_ID = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
_AXIS = "mode="
_LATENCY = "latency_p50"
_COLD, _WARM = "compile_time", "compile_time_cached"
_MEMORY = ("peak_device_memory", "peak_host_memory")
_HEADS = ("mode", "latency", "speed-up", "peak", "compile", "cached", "pays at")
_Modes = Mapping[str, Mapping[str, Comparison]]
"""A benchmark's comparisons by mode and metric."""


@dataclass(frozen=True, slots=True)
class ModeTable:
    """A table of one benchmark, in words. Empty columns are left out.

    ``lines`` has the heads first, then the rows. ``changed``: a row moved, or the advice differs
    from base's.
    """

    case: str
    lines: Sequence[tuple[str, ...]]
    advice: str
    changed: bool


@dataclass(frozen=True, slots=True)
class _Mode:
    """One side's numbers of a mode. ``p`` is that of its speed-up over eager (1: no evidence)."""

    name: str
    latency: float
    peak: float | None
    cold: float | None
    warm: float | None
    speedup: float | None = None
    lo: float | None = None
    hi: float | None = None
    p: float = 1.0
    pays: str = ""
    """After how many calls compiling pays."""

    @property
    def compiling_s(self) -> float:
        """The time to compile, with an empty cache if that is known. Unknown sorts last."""
        known = (took for took in (self.cold, self.warm) if took is not None)
        return next(known, math.inf)

    def cells(self) -> tuple[str, ...]:
        """Return the mode's line of the table."""
        gain = "" if self.speedup is None else _times(self.speedup)
        if self.lo is not None and self.hi is not None:
            gain += f" ({_digits(self.lo)}…{_digits(self.hi)})"
        peak, cold, warm = (
            "" if value is None else format_value(value, unit)
            for value, unit in ((self.peak, "bytes"), (self.cold, "s"), (self.warm, "s"))
        )
        return (self.name, format_value(self.latency, "s"), gain, peak, cold, warm, self.pays)


def _times(ratio: float) -> str:
    return f"{_digits(ratio)}×"


def _digits(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10.0 else format_value(ratio, "ratio")


def mode_tables(results: Iterable[Comparison]) -> Iterator[ModeTable]:
    """Yield a table for each benchmark with eager and another mode measured on head."""
    by_case: dict[str, dict[str, dict[str, Comparison]]] = {}
    for row in results:
        if split := without_mode(row.case):
            case, mode = split
            by_case.setdefault(case, {}).setdefault(mode, {})[row.metric] = row
    for case, modes in by_case.items():
        memory = next((name for name in _MEMORY if any(name in of for of in modes.values())), "")
        head, base = _measured(modes, memory, "head"), _measured(modes, memory, "base")
        if not head:
            continue
        threshold = modes[EAGER][_LATENCY].threshold
        best, before = recommended(head, threshold), recommended(base, threshold)
        moved = any(
            modes[mode][metric].status in {"regressed", "improved"}
            for mode in modes
            for metric in (_LATENCY, _COLD, _WARM, memory)
            if metric in modes[mode]
        )
        advice = _advice(head, best, threshold)
        if before and before != best:
            advice += "; on base " + ("no mode helped" if before == EAGER else f"it was {before}")
        lines = [_HEADS, *(mode.cells() for mode in head)]
        kept = [column for column in range(len(_HEADS)) if any(line[column] for line in lines[1:])]
        yield ModeTable(
            case,
            [tuple(line[column] for column in kept) for line in lines],
            advice,
            changed=moved or bool(best and before and best != before),
        )


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


def _measured(modes: _Modes, memory: str, side: Literal["base", "head"]) -> tuple[_Mode, ...]:
    """Return one side's modes, eager first. Empty unless eager and another mode have a latency."""
    eager = _number(modes, EAGER, _LATENCY, side)
    if not eager or eager < 0.0:
        return ()
    measured = []
    for name in (EAGER, *(mode for mode in modes if mode != EAGER)):
        latency = _number(modes, name, _LATENCY, side)
        if not latency or latency < 0.0:
            continue
        peak, cold, warm = (_number(modes, name, metric, side) for metric in (memory, _COLD, _WARM))
        if name == EAGER:
            measured.append(_Mode(name, latency, peak, cold, warm))
            continue
        spent = warm if cold is None else cold
        saves = spent is not None and latency < eager
        pays = f"{math.ceil(spent / (eager - latency)):,}" if saves and spent is not None else ""
        ratio = bounded_exp(math.log(eager) - math.log(latency))
        gain = _gain(ratio, modes[EAGER][_LATENCY], modes[name][_LATENCY], side)
        measured.append(_Mode(name, latency, peak, cold, warm, *gain, pays))
    return tuple(measured) if len(measured) > 1 else ()


def _number(modes: _Modes, mode: str, metric: str, side: Literal["base", "head"]) -> float | None:
    row = modes.get(mode, {}).get(metric)
    estimate = getattr(row, side) if row else None
    return estimate.center if estimate else None


def _gain(
    ratio: float, eager: Comparison, mode: Comparison, side: Literal["base", "head"]
) -> tuple[float, float | None, float | None, float]:
    """Return a mode's speed-up over eager, its interval, and its p-value.

    With too few values for a test, the speed-up is ``ratio``.
    """
    samples = [getattr(row, side).values for row in (mode, eager)]
    if all(len(values) >= DECIDING_ROUNDS and min(values) > 0.0 for values in samples):
        test = welch_t(*(list(map(math.log, values)) for values in samples))
        if test.estimate is not None and test.lo is not None and test.hi is not None:
            speedup, lo, hi = map(bounded_exp, (test.estimate, test.lo, test.hi))
            return speedup, lo, hi, 1.0 if test.p is None else test.p
    return ratio, None, None, 1.0


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
        fast = [mode for mode, speedup in helping if speedup * enough >= most]
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
