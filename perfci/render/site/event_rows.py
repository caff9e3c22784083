"""Events as rows of a list: one change as itself, several as one row with what they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from perfci.render.site import words
from perfci.render.site.catalogue import Catalogue, shown
from perfci.render.site.forge import address
from perfci.render.site.moved import Moved, moved_rows
from perfci.trend.change import Event, Trend

_MOST_NAMES = 2
"""Benchmarks that are named of an event; the others are counted."""


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
        case=_names(event.benchmarks),
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


def _names(benchmarks: Sequence[str]) -> str:
    rest = len(benchmarks) - _MOST_NAMES
    names = ", ".join(shown(one) for one in benchmarks[:_MOST_NAMES])
    return f"{names} and {rest:,} more" if rest > 0 else names


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))
