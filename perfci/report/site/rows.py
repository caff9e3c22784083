"""Rows of a trend's lists: one event or drift each, in words, for the site, Markdown and lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any
from urllib.parse import quote

from perfci.report.clean import clean_line
from perfci.report.drawing import Spark, spark
from perfci.report.site import words
from perfci.report.site.catalogue import Catalogue, slug
from perfci.report.site.words import address, pull_request, shown
from perfci.trend import Change, Drift, SeriesKey, Trend, TrendEvent, benchmark_of
from perfci.units import first_of, format_value, listed

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

    def first(self, name: str, items: Sequence[TrendEvent | Drift], most: int) -> dict[str, Any]:
        """Return for a template the first ``most`` rows as ``name``, and the number of the rest."""
        return {name: self.of(items[:most]), f"{name}_more": max(0, len(items) - most)}

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
            size=words.ratio_text(median(event.costs)) if event.costs else row.size,
            interval="",
            before="",
            after="",
            commits=words.range_text(event),
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
            interval=words.interval_text(change.ratio_lo, change.ratio_hi),
            before=format_value(before, series.unit),
            after=format_value(after, series.unit),
            commits=words.range_text(change),
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
            size=words.ratio_text(drift.ratio),
            interval=words.interval_text(drift.ratio_lo, drift.ratio_hi),
            commits=f"since {words.short(drift.baseline_sha)}" if drift.baseline_sha else "",
            surety=words.surety_text(drift.q),
            note=words.drift_text(drift),
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
        f"the median of {len(event.costs)}, the largest {words.ratio_text(largest)}"
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
