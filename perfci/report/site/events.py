"""Events, changes and drifts as rows of a list, with links and small lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from perfci.report.clean import clean_line
from perfci.report.site import words
from perfci.report.site.catalogue import Catalogue, shown
from perfci.report.site.words import address
from perfci.trend.change import Change, Drift, Event, Trend
from perfci.trend.series import Series, SeriesKey
from perfci.units import format_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST_SUBJECT = 120
_MOST_NAMES = 2
"""Benchmarks that are named of an event; the others are counted."""
WIDTH, HEIGHT = 120.0, 30.0
_EDGE = 2.0


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


def event_rows(
    events: Sequence[Event], trend: Trend, listed: Catalogue, *, drawn: bool = True
) -> tuple[Moved, ...]:
    """Return a row for each event whose worst change's series is known."""
    return tuple(_rows(events, trend, listed, drawn=drawn))


def _rows(
    events: Sequence[Event], trend: Trend, listed: Catalogue, *, drawn: bool
) -> Iterator[Moved]:
    keys = {one.key for one in trend.series}
    known = [event for event in events if event.changes[0].series in keys]
    rows = moved_rows([event.changes[0] for event in known], trend, listed, drawn=drawn)
    for event, row in zip(known, rows, strict=True):
        if len(event.changes) > 1:
            yield _of_several(event, row, trend.forge)
        else:
            yield replace(row, note=_joined(words.event_text(event), row.note))


def _of_several(event: Event, worst: Moved, forge: str) -> Moved:
    costs, largest = event.costs, event.largest_cost
    others = sum(one.worse is not event.worse for one in event.changes)
    note = _joined(
        f"the median of {len(costs)}, the largest {words.ratio_text(largest)}"
        if largest and len(costs) > 1
        else "",
        f"{others} {words.meaning(not event.worse)}" if others else "",
        words.event_text(event),
        event.status if event.status in {"acknowledged", "fixed"} else "",
    )
    return replace(
        worst,
        case=_names_of_event(event.benchmarks),
        metric=f"{event.series:,} of {event.measured:,} series",
        worse=event.worse,
        rises=event.worse,
        size=words.ratio_text(median(costs)) if costs else worst.size,
        interval="",
        before="",
        after="",
        commits=words.event_range(event),
        commits_href=address(forge, event.commits),
        surety="",
        note=note,
        id=event.id,
    )


def _names_of_event(benchmarks: Sequence[str]) -> str:
    rest = len(benchmarks) - _MOST_NAMES
    names = ", ".join(shown(one) for one in benchmarks[:_MOST_NAMES])
    return f"{names} and {rest:,} more" if rest > 0 else names


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Spark:
    """``path`` for SVG's ``d``; ``marks`` are x positions of changes. ``width`` × ``height``."""

    path: str
    marks: tuple[float, ...] = ()
    width: float = WIDTH
    height: float = HEIGHT


def spark(
    values: NDArray[Any], marks: tuple[int, ...] = (), width: float = WIDTH, height: float = HEIGHT
) -> Spark:
    """Draw finite ``values`` (n,): a point for two pixels, each the median of its share.

    The outermost 2 % don't decide the height: one outlier would make a flat line of the rest.
    """
    import numpy as np

    count = len(values)
    if count == 0:
        return Spark("", (), width, height)
    bins = min(count, int(width) // 2)
    edges = np.linspace(0, count, bins + 1).astype(int)
    points = np.array([np.median(values[a:b]) for a, b in pairwise(edges)])
    lo, hi = np.quantile(points, (0.02, 0.98))
    centre, span = (lo + hi) / 2.0, max(hi - lo, abs(lo) * 0.02, 1e-300)
    across = np.linspace(_EDGE, width - _EDGE, bins) if bins > 1 else np.array([width / 2.0])
    share = np.clip(0.5 - (points - centre) / span, 0.0, 1.0)
    down = _EDGE + share * (height - 2.0 * _EDGE)
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(across, down, strict=True))
    step = (width - 2.0 * _EDGE) / max(count - 1, 1)
    return Spark(path, tuple(round(_EDGE + mark * step, 1) for mark in marks), width, height)
