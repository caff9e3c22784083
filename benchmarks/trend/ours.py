"""perfci's own analysis, a whole set being one report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.trend.labelled import Labelled
from perfci.model.run import RunHeader
from perfci.trend import Change, Series, SeriesKey, Timeline, TrendSettings
from perfci.trend.changes import analyse

SETTINGS = {
    "defaults": TrendSettings(),
    "p < 1e-2": TrendSettings(alpha=1e-2),
    "p < 1e-4": TrendSettings(alpha=1e-4),
    "p < 1e-6": TrendSettings(alpha=1e-6),
    "2 %": TrendSettings(floor=0.02),
    "5 %": TrendSettings(floor=0.05),
    "p < 1e-4, 2 %": TrendSettings(alpha=1e-4, floor=0.02),
    "p < 1e-6, 2 %": TrendSettings(alpha=1e-6, floor=0.02),
}


def find(sets: Sequence[Labelled], settings: TrendSettings) -> list[list[int]]:
    """Return the places found in each series of a set. A ramp is placed in its middle."""
    names = {SeriesKey("machine", f"{i:06d}", "latency"): i for i in range(len(sets))}
    series = [
        Series(key, "s", "lower", np.arange(len(one.values), dtype=np.int32), one.values)
        for key, one in zip(names, sets, strict=True)
    ]
    nights = tuple(_night(i) for i in range(max(len(one.values) for one in sets)))
    timelines = {"machine": Timeline("machine", nights)}
    analysed = analyse(series, timelines, now="2026-01-01T00:00:00Z", settings=settings)
    found: list[list[int]] = [[] for _ in sets]
    for change in analysed.changes:
        found[names[change.series]].append(_place(change))
    return [sorted(places) for places in found]


def _place(change: Change) -> int:
    return change.after if change.kind == "step" else (change.before + 1 + change.after) // 2


def _night(number: int) -> RunHeader:
    return RunHeader(str(number), "", f"{number:040x}", "", "", "", "", number, "")
