"""The trend as it is listed: benchmarks and their series, how each stands, and rows in words."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal
from urllib.parse import quote

from perfci.metrics import METRICS
from perfci.model.run import Environment
from perfci.report.clean import clean_line
from perfci.report.drawing import Spark, spark
from perfci.report.links import names_of
from perfci.report.site import words
from perfci.report.site.words import address, pull_request, shown
from perfci.trend import (
    Change,
    Drift,
    Series,
    SeriesKey,
    Timeline,
    Trend,
    TrendEvent,
    benchmark_of,
)
from perfci.units import first_of, format_change, format_value, listed

Word = Literal["worse", "drifting", "better", "too_few"]
_NUMBER = re.compile(r"(\d+)")
LONGEST_SUBJECT = 120
"""Characters of a commit's subject, and of a note."""
_MOST_NAMES = 2
"""Benchmarks that an event's row names. The others are counted."""


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
        return {"worse": 0, "drifting": 2, "better": 3, "too_few": 8}[self.word] + (not self.new)


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
        each.key: standings[each.key].urgency if each.key in standings else 9 for each in members
    }
    of_case: dict[str, int] = {}
    for key, urgency in own.items():
        of_case[key.case] = min(of_case.get(key.case, 9), urgency)
    order = {name: place for place, name in enumerate(METRICS)}

    def place(series: Series) -> tuple[object, ...]:
        key = series.key
        case = (of_case[key.case], _natural(key.case))
        return (*case, own[key], order.get(key.metric, 99), key.metric, key.environment)

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


@dataclass(frozen=True, slots=True)
class TrendRow:
    """One change, event or drift in words. The texts are cleaned, but not escaped."""

    case: str
    metric: str
    environment: str
    href: str
    worse: bool
    rises: bool
    size: str
    interval: str
    surety: str
    note: str
    spark: Spark | None
    commits: str = ""
    before: str = ""
    after: str = ""
    count: str = ""
    subject: str = ""
    date: str = ""
    acknowledged: str = ""
    id: str = ""
    commits_href: str = ""
    pull: str = ""
    pull_href: str = ""
    bisect: str = ""


class TrendRows:
    """Makes a row for each event and drift of a trend whose series is known.

    ``drawn``: each row has a small line of its series.
    """

    def __init__(self, trend: Trend, listed: Catalogue, *, drawn: bool = True) -> None:
        self._trend = trend
        self._listed = listed
        self._drawn = drawn
        self._series = {series.key: series for series in trend.series}

    def lists(self, named: Mapping[str, Sequence[TrendEvent | Drift]], most: int) -> dict[str, Any]:
        """Return each list's first ``most`` rows, and as ``…_more`` the number of the others."""
        rows = {name: self.of(items[:most]) for name, items in named.items()}
        more = {f"{name}_more": max(0, len(items) - most) for name, items in named.items()}
        return rows | more

    def of(self, items: Sequence[TrendEvent | Drift]) -> tuple[TrendRow, ...]:
        """Return a row for each of ``items`` whose series is known."""
        return tuple(
            self._drift(item) if isinstance(item, Drift) else self._event(item)
            for item in items
            if (item.series if isinstance(item, Drift) else item.changes[0].series) in self._series
        )

    def _event(self, event: TrendEvent) -> TrendRow:
        """Return the row of an event.

        It shows the worst open change. If the event has several changes, figures of all of them
        replace those of the one.
        """
        row = replace(self._change(event.outstanding[0]), bisect=words.bisect_command(event))
        if len(event.changes) == 1:
            return replace(row, note=_joined(words.event_text(event), row.note))
        series = dict.fromkeys(change.series for change in event.outstanding)
        cases = {key.case for key in series}
        metrics = list(dict.fromkeys(shown(key.metric) for key in series))
        benchmarks = list(dict.fromkeys(shown(benchmark_of(key.case)) for key in series))
        return replace(
            row,
            case=row.case if len(cases) == 1 else first_of(benchmarks, _MOST_NAMES),
            metric=listed(metrics)
            if len(cases) == 1
            else f"{len(series):,} of {event.measured:,} series",
            size=format_change(median(event.costs)) if event.costs else row.size,
            interval="",
            before="",
            after="",
            commits=words.range_text(event.commits),
            commits_href=address(self._trend.forge, event.commits),
            surety="",
            note=_note_of_several(event),
            id=event.id,
        )

    def _change(self, change: Change) -> TrendRow:
        import numpy as np

        series = self._series[change.series]
        runs = self._trend.timelines[series.key.environment].runs
        first, last = int(series.rows[change.before]), int(series.rows[change.after])
        # a level is the median of up to 20 points next to the change, as in the chart
        before = float(np.median(series.values[max(0, change.before - 19) : change.before + 1]))
        after = float(np.median(series.values[change.after : change.after + 20]))
        subject = "" if change.same_commit else runs[last].subject
        pull, pull_href = pull_request(self._trend.forge, subject)
        return TrendRow(
            **_names(series.key, self._listed),
            worse=change.worse,
            rises=words.rises(change),
            size=words.change_text(change, series.unit),
            interval=words.interval_text(change),
            before=format_value(before, series.unit),
            after=format_value(after, series.unit),
            commits=words.range_text(change.commits),
            count=_count(runs[first].position, runs[last].position),
            subject=clean_line(subject, LONGEST_SUBJECT),
            date=words.day(change.at),
            surety=words.surety_text(change.q),
            note=words.kind_text(change),
            acknowledged=clean_line(change.note, LONGEST_SUBJECT),
            id=clean_line(change.id, 100),
            spark=spark(series.values, (change.after,)) if self._drawn else None,
            commits_href=address(self._trend.forge, change.commits),
            pull=pull,
            pull_href=pull_href,
        )

    def _drift(self, drift: Drift) -> TrendRow:
        series = self._series[drift.series]
        return TrendRow(
            **_names(series.key, self._listed),
            worse=drift.worse,
            rises=drift.ratio > 1.0,
            size=format_change(drift.ratio),
            interval=words.interval_text(drift),
            commits=f"since {words.short(drift.baseline_sha)}" if drift.baseline_sha else "",
            surety=words.surety_text(drift.q),
            note=f"the last {drift.days} days against the last accepted level",
            spark=spark(series.values) if self._drawn else None,
        )


def link(key: SeriesKey) -> str:
    """Return a series' chart as an address relative to the overview, the same in every report."""
    parts = "/".join(
        quote(text.encode("utf-8", "backslashreplace"), safe="")
        for text in (shown(key.case), shown(key.metric), shown(key.environment))
    )
    return f"benchmarks/{slug(benchmark_of(key.case))}.html#{parts}"


def _names(key: SeriesKey, listed: Catalogue) -> dict[str, Any]:
    return {
        "case": shown(key.case),
        "metric": shown(key.metric),
        "environment": listed.labels.get(key.environment, shown(key.environment)),
        "href": link(key),
    }


def _count(first: int | None, last: int | None) -> str:
    """Return how many commits may have caused a change, or "" for a single or unknown number."""
    if first is None or last is None or last - first <= 1:
        return ""
    return f"{last - first:,} commits, the last"


def _note_of_several(event: TrendEvent) -> str:
    largest = event.largest_cost
    new = sum(change.status == "new" for change in event.changes)
    settled = len(event.changes) - len(event.outstanding)
    return _joined(
        f"the median of {len(event.costs)}, the largest {format_change(largest)}"
        if largest and len(event.costs) > 1
        else "",
        f"{new} since the last report" if new and not event.news else "",
        f"{settled} no longer open" if settled else "",
        words.event_text(event),
        listed(sorted({change.status for change in event.changes}))
        if event.status in {"acknowledged", "fixed"}
        else "",
    )


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def row_text(row: TrendRow, several: bool) -> str:
    """Return a row as one plain line. ``several``: the environment is named, too."""
    parts = (
        f"{row.size} {words.meaning(row.worse)}",
        f"{row.case} {row.metric}",
        row.environment if several else "",
        row.commits,
        row.date,
        row.note,
        f"id {row.id}" if row.id else "",
    )
    return ", ".join(filter(None, parts))
