"""A trend as all formats for people show it: its headline, and a row for each event and drift."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from perfci.report.clean import clean_line
from perfci.report.drawing import Spark, spark
from perfci.report.site import words
from perfci.report.site.catalogue import catalogue, link, standings
from perfci.report.site.words import address, pull_request, shown
from perfci.trend import Change, Drift, SeriesKey, Trend, TrendEvent, benchmark_of
from perfci.units import counted, first_of, format_change, format_value, listed

LONGEST_SUBJECT = 120
"""Characters of a commit's subject, and of a note."""
_MOST_NAMES = 2
"""Benchmarks that an event's row names. The others are counted."""


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
    spark: Spark
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


class TrendView:
    """A trend as all formats for people show it: its series listed, its events in groups.

    ``groups`` has the events that are new and ``worse``, new and ``better``, and ``open``: older,
    worse, and neither fixed nor acknowledged. Of these the worst come first. The rest are
    ``earlier``, the newest first.
    """

    def __init__(self, trend: Trend) -> None:
        self.trend = trend
        self.standings = standings(trend)
        self.listed = catalogue(trend, self.standings)
        self.groups = _groups(trend.events)
        self.headline = words.headline(trend, self.groups)
        early = words.too_early(trend)
        self.early = "" if early == self.headline else early
        self._series = {series.key: series for series in trend.series}
        self.several = len(self.listed.labels) > 1
        """Whether there are several environments."""
        self.lists: dict[str, Sequence[TrendEvent | Drift]] = {
            "new": (*self.groups["worse"], *self.groups["better"]),
            "open": self.groups["open"],
            "drifts": [drift for drift in trend.drifts if drift.worse],
        }
        """The lists that a reader sees first, in order."""

    @property
    def scope(self) -> str:
        """The extent of the trend in one line: series, benchmarks, runs, environments."""
        timelines = self.trend.timelines.values()
        runs = [run for timeline in timelines for run in timeline.runs]
        newest = max((run.measured_at for run in runs), default="")
        return (
            f"{len(self.trend.series):,} series of "
            f"{counted(len(self.listed.benchmarks), 'benchmark')}; "
            f"{counted(len(runs), 'run')} in {counted(len(timelines), 'environment')}"
        ) + (f"; the newest of {words.day(newest)}" if newest else "")

    def rows(self, named: Mapping[str, Sequence[TrendEvent | Drift]], most: int) -> dict[str, Any]:
        """Return each list's first ``most`` rows, and as ``…_more`` the number of the others.

        An event or drift without its series has no row.
        """
        rows = {
            name: [
                self._drift(item) if isinstance(item, Drift) else self._event(item)
                for item in items[:most]
                if (item.series if isinstance(item, Drift) else item.changes[0].series)
                in self._series
            ]
            for name, items in named.items()
        }
        more = {f"{name}_more": max(0, len(items) - most) for name, items in named.items()}
        return rows | more

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
            commits_href=address(self.trend.forge, event.commits),
            surety="",
            note=_note_of_several(event),
            id=event.id,
        )

    def _change(self, change: Change) -> TrendRow:
        import numpy as np

        series = self._series[change.series]
        runs = self.trend.timelines[series.key.environment].runs
        first, last = int(series.rows[change.before]), int(series.rows[change.after])
        # a level is the median of up to 20 points next to the change, as in the chart
        before = float(np.median(series.values[max(0, change.before - 19) : change.before + 1]))
        after = float(np.median(series.values[change.after : change.after + 20]))
        subject = "" if change.same_commit else runs[last].subject
        pull, pull_href = pull_request(self.trend.forge, subject)
        return TrendRow(
            **self._names(series.key),
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
            spark=spark(series.values, (change.after,)),
            commits_href=address(self.trend.forge, change.commits),
            pull=pull,
            pull_href=pull_href,
        )

    def _drift(self, drift: Drift) -> TrendRow:
        series = self._series[drift.series]
        return TrendRow(
            **self._names(series.key),
            worse=drift.worse,
            rises=drift.ratio > 1.0,
            size=format_change(drift.ratio),
            interval=words.interval_text(drift),
            commits=f"since {words.short(drift.baseline_sha)}" if drift.baseline_sha else "",
            surety=words.surety_text(drift.q),
            note=f"the last {drift.days} days against the last accepted level",
            spark=spark(series.values),
        )

    def _names(self, key: SeriesKey) -> dict[str, Any]:
        return {
            "case": shown(key.case),
            "metric": shown(key.metric),
            "environment": self.listed.labels.get(key.environment, shown(key.environment)),
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


def _groups(events: Sequence[TrendEvent]) -> dict[str, list[TrendEvent]]:
    groups: dict[str, list[TrendEvent]] = {"worse": [], "better": [], "open": [], "earlier": []}
    for event in events:
        if event.status == "new":
            groups["worse" if event.worse else "better"].append(event)
        else:
            groups["open" if event.worse and event.status == "known" else "earlier"].append(event)
    for name in ("worse", "better", "open"):
        groups[name].sort(key=_size, reverse=True)
    return groups


def _size(event: TrendEvent) -> float:
    """Return the size that the event's row shows, infinite for a change from zero."""
    return abs(math.log(median(event.costs))) if event.costs else math.inf
