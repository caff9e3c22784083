"""Changes and drifts as rows of a list, in words, with a small line and a link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from perfci.render.clean import clean_line
from perfci.render.site import words
from perfci.render.site.catalogue import Catalogue, shown
from perfci.render.site.forge import address
from perfci.render.site.sparkline import Spark, spark
from perfci.trend.change import Change, Drift, Trend
from perfci.trend.timeline.series import Series, SeriesKey
from perfci.units import format_value

LONGEST_SUBJECT = 120


@dataclass(frozen=True, slots=True)
class Moved:
    """One change or drift, ready to be shown. Its texts are clean, but not escaped."""

    case: str
    metric: str
    environment: str
    href: str
    worse: bool
    rises: bool
    size: str
    interval: str
    before: str
    after: str
    commits: str
    count: str
    subject: str
    date: str
    surety: str
    note: str
    acknowledged: str
    id: str
    spark: Spark | None
    commits_href: str = ""


def moved_rows(
    changes: Sequence[Change], trend: Trend, listed: Catalogue, *, drawn: bool = True
) -> tuple[Moved, ...]:
    """Return a row for each change whose series is known."""
    return tuple(_changes(changes, trend, listed, drawn=drawn))


def drift_rows(
    drifts: Sequence[Drift], trend: Trend, listed: Catalogue, *, drawn: bool = True
) -> tuple[Moved, ...]:
    """Return a row for each drift whose series is known."""
    by_key = _by_key(trend, drifts)
    return tuple(
        _drift(drift, by_key[drift.series], listed, drawn=drawn)
        for drift in drifts
        if drift.series in by_key
    )


def link(key: SeriesKey, listed: Catalogue) -> str:
    """Return the address of a series' chart, seen from the overview; the same in each report."""
    wanted = "/".join(
        quote(text.encode("utf-8", "backslashreplace"), safe="")
        for text in (shown(key.case), shown(key.metric), shown(key.environment))
    )
    return f"benchmarks/{listed.slug_of(key.case)}.html#{wanted}"


def _changes(
    changes: Sequence[Change], trend: Trend, listed: Catalogue, *, drawn: bool
) -> Iterator[Moved]:
    by_key = _by_key(trend, changes)
    for change in changes:
        series = by_key.get(change.series)
        if series is not None:
            yield _change(change, series, trend, listed, drawn=drawn)


def _change(
    change: Change, series: Series, trend: Trend, listed: Catalogue, *, drawn: bool
) -> Moved:
    import numpy as np

    runs = trend.timelines[series.key.environment].runs
    first, last = int(series.rows[change.before]), int(series.rows[change.after])
    commits = words.range_text(change)
    # a level is the median up to 20 points away from the change: what a reader sees in the chart
    before = float(np.median(series.values[max(0, change.before - 19) : change.before + 1]))
    after = float(np.median(series.values[change.after : change.after + 20]))
    return Moved(
        **_names(series.key, listed),
        worse=change.worse,
        rises=words.rises(change),
        size=words.change_text(change, series.unit),
        interval=words.interval_text(change.ratio_lo, change.ratio_hi),
        before=format_value(before, series.unit),
        after=format_value(after, series.unit),
        commits=commits,
        count=_count(runs[first].position, runs[last].position),
        subject="" if change.same_commit else clean_line(runs[last].subject, LONGEST_SUBJECT),
        date=words.day(change.at),
        surety=words.surety_text(change.q),
        note=words.kind_text(change),
        acknowledged=clean_line(change.note, LONGEST_SUBJECT),
        id=clean_line(change.id, 100),
        spark=spark(series.values, (change.after,)) if drawn else None,
        commits_href=address(trend.forge, change.commits),
    )


def _drift(drift: Drift, series: Series, listed: Catalogue, *, drawn: bool) -> Moved:
    return Moved(
        **_names(series.key, listed),
        worse=drift.worse,
        rises=drift.ratio > 1.0,
        size=words.ratio_text(drift.ratio),
        interval=words.interval_text(drift.ratio_lo, drift.ratio_hi),
        before="",
        after="",
        commits=f"since {words.short(drift.baseline_sha)}" if drift.baseline_sha else "",
        count="",
        subject="",
        date="",
        surety=words.surety_text(drift.q),
        note=words.drift_text(drift),
        acknowledged="",
        id="",
        spark=spark(series.values) if drawn else None,
    )


def _names(key: SeriesKey, listed: Catalogue) -> dict[str, Any]:
    return {
        "case": shown(key.case),
        "metric": shown(key.metric),
        "environment": listed.labels.get(key.environment, shown(key.environment)),
        "href": link(key, listed),
    }


def _count(first: int | None, last: int | None) -> str:
    """Return how many commits may have done it; nothing where it is one, or isn't known."""
    if first is None or last is None or last - first <= 1:
        return ""
    return f"{last - first:,} commits, the last"


def _by_key(trend: Trend, wanted: Sequence[Change] | Sequence[Drift]) -> Mapping[SeriesKey, Series]:
    keys = {one.series for one in wanted}
    return {series.key: series for series in trend.series if series.key in keys}
