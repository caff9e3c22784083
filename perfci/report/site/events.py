"""Events, changes and drifts as rows of a list, with links and small lines."""

from __future__ import annotations

from collections.abc import Sequence
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
from perfci.trend.series import SeriesKey
from perfci.units import format_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST_SUBJECT = 120
_MOST_NAMES = 2
"""Benchmarks that are named of an event; the others are counted."""
WIDTH, HEIGHT = 120.0, 30.0
_EDGE = 2.0


@dataclass(frozen=True, slots=True)
class TrendRow:
    """One change, event or drift, ready to be shown. Its texts are clean, but not escaped."""

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


class TrendRows:
    """Makes rows of a trend's events and drifts whose series are known.

    ``drawn`` rows have a small line each.
    """

    def __init__(self, trend: Trend, listed: Catalogue, *, drawn: bool = True) -> None:
        self._trend = trend
        self._listed = listed
        self._drawn = drawn
        self._series = {series.key: series for series in trend.series}

    def first(self, name: str, items: Sequence[Event | Drift], most: int) -> dict[str, Any]:
        """Return the first rows for a template, as ``name``, and how many more there are."""
        return {name: self.of(items[:most]), f"{name}_more": max(0, len(items) - most)}

    def of(self, items: Sequence[Event | Drift]) -> tuple[TrendRow, ...]:
        """Return a row for each of ``items`` whose series is known."""
        return tuple(
            self._drift(item) if isinstance(item, Drift) else self._event(item)
            for item in items
            if self.knows(item)
        )

    def knows(self, item: Event | Drift) -> bool:
        """Return whether the series of a drift, or of an event's worst change, is known."""
        key = item.series if isinstance(item, Drift) else item.changes[0].series
        return key in self._series

    def _event(self, event: Event) -> TrendRow:
        """Return the row of the event's worst change, with what it shares with the others."""
        row = self._change(event.changes[0])
        if len(event.changes) == 1:
            return replace(row, note=_joined(words.event_text(event), row.note))
        return replace(
            row,
            case=_names_of_event(event.benchmarks),
            metric=f"{event.series:,} of {event.measured:,} series",
            worse=event.worse,
            rises=event.worse,
            size=words.ratio_text(median(event.costs)) if event.costs else row.size,
            interval="",
            before="",
            after="",
            commits=words.event_range(event),
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
        # a level is the median up to 20 points away from the change, which the chart shows
        before = float(np.median(series.values[max(0, change.before - 19) : change.before + 1]))
        after = float(np.median(series.values[change.after : change.after + 20]))
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
            subject="" if change.same_commit else clean_line(runs[last].subject, LONGEST_SUBJECT),
            date=words.day(change.at),
            surety=words.surety_text(change.q),
            note=words.kind_text(change),
            acknowledged=clean_line(change.note, LONGEST_SUBJECT),
            id=clean_line(change.id, 100),
            spark=spark(series.values, (change.after,)) if self._drawn else None,
            commits_href=address(self._trend.forge, change.commits),
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


def link(key: SeriesKey, listed: Catalogue) -> str:
    """Return the address of a series' chart from the overview, the same in each report."""
    parts = "/".join(
        quote(text.encode("utf-8", "backslashreplace"), safe="")
        for text in (shown(key.case), shown(key.metric), shown(key.environment))
    )
    return f"benchmarks/{listed.slug_of(key.case)}.html#{parts}"


def _names(key: SeriesKey, listed: Catalogue) -> dict[str, Any]:
    return {
        "case": shown(key.case),
        "metric": shown(key.metric),
        "environment": listed.labels.get(key.environment, shown(key.environment)),
        "href": link(key, listed),
    }


def _count(first: int | None, last: int | None) -> str:
    """Return how many commits may have done it, or nothing where it is one, or unknown."""
    if first is None or last is None or last - first <= 1:
        return ""
    return f"{last - first:,} commits, the last"


def _note_of_several(event: Event) -> str:
    largest = event.largest_cost
    others = sum(change.worse is not event.worse for change in event.changes)
    return _joined(
        f"the median of {len(event.costs)}, the largest {words.ratio_text(largest)}"
        if largest and len(event.costs) > 1
        else "",
        f"{others} {words.meaning(not event.worse)}" if others else "",
        words.event_text(event),
        event.status if event.status in {"acknowledged", "fixed"} else "",
    )


def _names_of_event(benchmarks: Sequence[str]) -> str:
    rest = len(benchmarks) - _MOST_NAMES
    names = ", ".join(map(shown, benchmarks[:_MOST_NAMES]))
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
