"""Environments that took each other's place on a runner: a new driver, interpreter or machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from perfci.model.instant import in_utc
from perfci.trend.change import Replacement
from perfci.trend.timeline.still_measured import is_own

if TYPE_CHECKING:
    from perfci.trend.timeline.series import Series, Timeline

_RUNS = 14
"""On each side, of a series: so many are compared, at most."""


def replacements(
    timelines: Mapping[str, Timeline], series: Sequence[Series]
) -> tuple[Replacement, ...]:
    """Return where an environment ended on a runner before another began there, newest first.

    Two that take turns replace none. Of other tools' runs nothing is said: what they call a
    machine may be several.
    """
    spans: dict[str, dict[str, tuple[str, str]]] = {}
    for key, timeline in timelines.items():
        for run in timeline.runs if is_own(timeline) else ():
            if run.runner and (moment := in_utc(run.measured_at)):
                of_runner = spans.setdefault(run.runner, {})
                first, last = of_runner.get(key, (moment, moment))
                of_runner[key] = min(first, moment), max(last, moment)
    by_environment: dict[str, dict[tuple[str, str], Series]] = {}
    for one in series:
        known = by_environment.setdefault(one.key.environment, {})
        known[one.key.case, one.key.metric] = one
    found = []
    for runner, of_runner in spans.items():
        ordered = sorted(of_runner, key=of_runner.__getitem__)
        for old, new in pairwise(ordered):
            if of_runner[old][1] < of_runner[new][0]:
                costs = tuple(_costs(by_environment.get(old, {}), by_environment.get(new, {})))
                facts = _differing(timelines[old].facts, timelines[new].facts)
                cost = median(costs) if costs else None
                at = of_runner[new][0]
                found.append(Replacement(runner, old, new, at, facts, len(costs), cost))
    return tuple(sorted(found, key=lambda one: (one.at, one.runner), reverse=True))


def _costs(
    olds: Mapping[tuple[str, str], Series], news: Mapping[tuple[str, str], Series]
) -> Iterator[float]:
    for name in olds.keys() & news.keys():
        old, new = olds[name], news[name]
        before = float(median(old.values[-_RUNS:].tolist()))
        after = float(median(new.values[:_RUNS].tolist()))
        if old.unit == new.unit and before > 0.0 and after > 0.0:
            yield after / before if old.direction == "lower" else before / after


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (name, old.get(name, ""), new.get(name, ""))
        for name in sorted(old.keys() | new.keys())
        if old.get(name, "") != new.get(name, "") and not name.startswith("note_")
    )
