"""The trend as the site lists it: benchmarks with their series, how each stands, and releases."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.metrics import METRICS
from perfci.model.run import Environment
from perfci.report.links import names_of
from perfci.trend import Change, Drift, Series, SeriesKey, Timeline, Trend, benchmark_of

Word = Literal["worse", "drifting", "better", "steady", "too_few"]
WORDS: tuple[Word, ...] = ("steady", "worse", "better", "drifting", "too_few")
"""All words of a standing. Data files store a word's index in this tuple."""
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class SeriesStanding:
    """The present state of a series, with the ``change`` or ``drift`` that is the reason.

    ``new``: the change came since the last report. ``word`` is ``too_few`` if the series has too
    few runs to judge whether it is steady.
    """

    word: Word
    new: bool
    change: Change | None = None
    drift: Drift | None = None

    @property
    def urgency(self) -> int:
        """The order of standings: new and worse, still worse, drifting, better, the others."""
        place = {"worse": 0, "drifting": 2, "better": 3, "steady": 8, "too_few": 8}[self.word]
        return place + (not self.new)


def standings(trend: Trend) -> dict[SeriesKey, SeriesStanding]:
    """Return the most urgent standing of each series. Steady series are left out."""
    known = [(key, SeriesStanding("too_few", False)) for key in trend.too_few]
    for change in trend.changes:
        new = change.status == "new"
        if new or (change.worse and change.status == "known"):
            word: Word = "worse" if change.worse else "better"
            known.append((change.series, SeriesStanding(word, new, change)))
    known += [
        (drift.series, SeriesStanding("drifting", False, drift=drift))
        for drift in trend.drifts
        if drift.worse
    ]
    standing: dict[SeriesKey, SeriesStanding] = {}
    for key, each in sorted(known, key=lambda entry: entry[1].urgency):
        standing.setdefault(key, each)
    return standing


@dataclass(frozen=True, slots=True)
class ListedBenchmark:
    """One benchmark and its page. ``series`` are in the order in which the page shows them."""

    name: str
    slug: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All benchmarks, sorted by name, and the environments.

    ``places`` maps an environment's key to its index, which data files use. ``labels`` maps it to
    its name for people.
    """

    benchmarks: tuple[ListedBenchmark, ...]
    places: Mapping[str, int]
    labels: Mapping[str, str]


def catalogue(trend: Trend, standings: Mapping[SeriesKey, SeriesStanding]) -> Catalogue:
    """Return the catalogue of ``trend``. Each benchmark's series are sorted, moved ones first.

    A series that ``standings`` lacks is steady.
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
    """Return the part of a case's id that names its axes, or ""."""
    rest = case[len(benchmark_of(case)) :]
    return rest[1:-1] if rest.startswith("[") and rest.endswith("]") else rest


def slug(benchmark: str) -> str:
    """Return a file name for a benchmark of any name. It is the same in every report."""
    digest = hashlib.sha256(benchmark.encode("utf-8", "backslashreplace")).hexdigest()[:10]
    plain = re.sub(r"[^a-z0-9]+", "-", benchmark[:200].lower())[:40].strip("-")
    return f"{plain}-{digest}" if plain else digest


def _in_order(
    members: Sequence[Series], standings: Mapping[SeriesKey, SeriesStanding]
) -> tuple[Series, ...]:
    """Return a benchmark's series, those of the case with the most urgent standing first."""
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
    """Return a sort key that puts ``batch=2`` before ``batch=16``."""
    parts = _NUMBER.split(text)
    return tuple(
        (1, int(part), part) if place % 2 and len(part) < 20 and part.isascii() else (0, 0, part)
        for place, part in enumerate(parts)
    )


def release_runs(
    tags: Mapping[str, tuple[str, ...]], order: Sequence[str], timelines: Mapping[str, Timeline]
) -> dict[str, tuple[str, ...]]:
    """Return for each release the first measured commit that contains it: names by commit.

    ``tags`` maps commits to names. ``order`` has the branch's commits, the oldest first. A nightly
    run seldom measures the tagged commit itself, so a release is shown at the next measured commit.
    Of the tags older than all runs, only the newest is shown, at the first run: the older ones were
    outdated by then. A tag that isn't on the branch, or is newer than all runs, is left out.
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
