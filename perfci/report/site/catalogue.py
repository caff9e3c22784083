"""The series as the site lists them: benchmarks, each with its cases, each with its metrics."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.metrics import METRICS
from perfci.model.run import Environment
from perfci.report.clean import clean_line
from perfci.report.links import names_of
from perfci.trend.change import Change, Drift, Trend, benchmark_of
from perfci.trend.series import Series, SeriesKey, Timeline

Word = Literal["worse", "drifting", "better", "steady", "too_few"]
WORDS: tuple[Word, ...] = ("steady", "worse", "better", "drifting", "too_few")
"""In data files a standing is its place in this tuple."""
LONGEST_NAME = 200
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class SeriesStanding:
    """The state of a series today, by the ``change`` or ``drift`` that a reader has to look at.

    ``new``: since the last report. ``too_few``: too few runs to judge whether it is steady.
    """

    word: Word
    new: bool
    change: Change | None = None
    drift: Drift | None = None

    @property
    def urgency(self) -> int:
        """The order: new and worse, still worse, drifting, better."""
        place = {"worse": 0, "drifting": 2, "better": 3, "steady": 8, "too_few": 8}[self.word]
        return place + (not self.new)


def standings(trend: Trend) -> dict[SeriesKey, SeriesStanding]:
    """Return how each series stands. The steady are left out."""
    standing: dict[SeriesKey, SeriesStanding] = {}
    for key, known in _all_standings(trend):
        if key not in standing or known.urgency < standing[key].urgency:
            standing[key] = known
    return standing


def series_of(changes: Sequence[Change] | Sequence[Drift]) -> int:
    """Return how many series the changes are of."""
    return len({change.series for change in changes})


def _all_standings(trend: Trend) -> Iterable[tuple[SeriesKey, SeriesStanding]]:
    """Yield standings, the worst first. A series that is gone has none of what is known."""
    for change in trend.changes:
        if change.worse and change.status == "new":
            yield change.series, SeriesStanding("worse", True, change)
        elif change.worse and change.status == "known" and change.series not in trend.gone:
            yield change.series, SeriesStanding("worse", False, change)
    for drift in trend.drifts:
        if drift.worse and drift.series not in trend.gone:
            yield drift.series, SeriesStanding("drifting", False, drift=drift)
    for change in trend.changes:
        if change.status == "new" and not change.worse:
            yield change.series, SeriesStanding("better", True, change)
    for key in trend.too_few:
        yield key, SeriesStanding("too_few", False)


@dataclass(frozen=True, slots=True)
class ListedBenchmark:
    """One benchmark and its page. ``series`` are in the order in which the page shows them."""

    name: str
    slug: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All benchmarks by name; environments by key with their place and the name people read."""

    benchmarks: tuple[ListedBenchmark, ...]
    places: Mapping[str, int]
    labels: Mapping[str, str]

    def slug_of(self, case: str) -> str:
        """Return the name of the page's file on which ``case`` is."""
        return slug(benchmark_of(case))


def catalogue(trend: Trend, standings: Mapping[SeriesKey, SeriesStanding]) -> Catalogue:
    """Return the benchmarks of ``trend``; on a page what moved comes first.

    What is not in ``standings`` is steady.
    """
    grouped: dict[str, list[Series]] = {}
    for series in trend.series:
        grouped.setdefault(benchmark_of(series.key.case), []).append(series)
    benchmarks = [
        ListedBenchmark(name, slug(name), _in_order(grouped[name], standings))
        for name in sorted(grouped, key=_natural)
    ]
    keys = tuple(trend.timelines)
    labels = names_of([Environment(key, trend.timelines[key].facts) for key in keys])
    return Catalogue(
        benchmarks=tuple(benchmarks),
        places={key: place for place, key in enumerate(keys)},
        labels=dict(zip(keys, labels, strict=True)),
    )


def axes_of(case: str) -> str:
    """Return what distinguishes ``case`` from its benchmark's others; empty for an only one."""
    rest = case[len(benchmark_of(case)) :]
    return rest[1:-1] if rest.startswith("[") and rest.endswith("]") else rest


def slug(benchmark: str) -> str:
    """Return a file name for a benchmark, the same in every report, whatever its letters."""
    digest = hashlib.sha256(benchmark.encode("utf-8", "backslashreplace")).hexdigest()[:10]
    plain = re.sub(r"[^a-z0-9]+", "-", benchmark[:200].lower())[:40].strip("-")
    return f"{plain}-{digest}" if plain else digest


def shown(name: str) -> str:
    """Return an untrusted name as one visible line."""
    return clean_line(name, LONGEST_NAME)


def _in_order(
    members: Sequence[Series], standings: Mapping[SeriesKey, SeriesStanding]
) -> tuple[Series, ...]:
    own = {
        series.key: standings[series.key].urgency if series.key in standings else 9
        for series in members
    }
    urgency: dict[str, int] = {}
    for key, of_series in own.items():
        urgency[key.case] = min(urgency.get(key.case, 9), of_series)

    order = {name: place for place, name in enumerate(METRICS)}

    def place(series: Series) -> tuple[object, ...]:
        key = series.key
        metric = order.get(key.metric, len(order))
        case = (urgency[key.case], _natural(key.case))
        return (*case, own[key], metric, key.metric, key.environment)

    return tuple(sorted(members, key=place))


def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Order ``batch=2`` before ``batch=16``."""
    parts = _NUMBER.split(text)
    return tuple(
        (1, int(part), part) if place % 2 and len(part) < 20 and part.isascii() else (0, 0, part)
        for place, part in enumerate(parts)
    )


def release_runs(
    tags: Mapping[str, tuple[str, ...]], order: Sequence[str], timelines: Mapping[str, Timeline]
) -> dict[str, tuple[str, ...]]:
    """Return the measured commits that are the first with releases, and their names.

    ``tags`` maps commits to names, ``order`` holds the branch's commits, the oldest first. A
    tagged commit is seldom the one that a nightly run measures: the next measured one is named. Of
    the tags older than all runs the newest is named, at the first run, which has it: the others
    were outdated by then. A tag that isn't on the branch, or is newer than all runs, is left out.
    """
    ranks = {sha: place for place, sha in enumerate(order)}
    names: dict[str, list[str]] = {}
    for timeline in timelines.values():
        measured = sorted({ranks[run.sha] for run in timeline.runs if run.sha in ranks})
        if not measured:
            continue
        placed = [(ranks[sha], name) for sha in tags if sha in ranks for name in tags[sha]]
        before = max((rank for rank, _ in placed if rank < measured[0]), default=0)
        for rank, name in placed:
            if rank < before or rank > measured[-1]:
                continue
            of_run = names.setdefault(order[measured[bisect_left(measured, rank)]], [])
            if name not in of_run:
                of_run.append(name)
    return {sha: tuple(of_run) for sha, of_run in names.items()}
