"""The events by what a reader does with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfci.trend.change import Change, Drift, Event, Trend


@dataclass(frozen=True, slots=True)
class SortedEvents:
    """The events in groups, each the newest first."""

    new_worse: tuple[Event, ...]
    new_better: tuple[Event, ...]
    open_worse: tuple[Event, ...]
    earlier: tuple[Event, ...]
    drifts_worse: tuple[Drift, ...]


def sort_events(trend: Trend) -> SortedEvents:
    """Return the events of ``trend`` in groups.

    What a series that is measured no more was left with is not still worse, nor does it drift.
    """
    groups: dict[str, list[Event]] = {"worse": [], "better": [], "open": [], "earlier": []}
    for event in trend.events:
        new = [one for one in event.changes if one.status == "new"]
        left = [one for one in open_changes((event,)) if one.series not in trend.gone]
        if any(one.worse for one in new):
            groups["worse"].append(event)
        elif new:
            groups["better"].append(event)
        else:
            groups["open" if left else "earlier"].append(event)
    drifts = (one for one in trend.drifts if one.worse and one.series not in trend.gone)
    return SortedEvents(
        new_worse=tuple(groups["worse"]),
        new_better=tuple(groups["better"]),
        open_worse=tuple(groups["open"]),
        earlier=tuple(groups["earlier"]),
        drifts_worse=tuple(drifts),
    )


def new_changes(events: Sequence[Event], *, worse: bool) -> list[Change]:
    """Return the new changes of the events that are worse, or better."""
    return [
        one
        for event in events
        for one in event.changes
        if one.status == "new" and one.worse is worse
    ]


def open_changes(events: Sequence[Event]) -> list[Change]:
    """Return the changes of the events that were known and are still worse."""
    return [one for event in events for one in event.changes if one.status == "known" and one.worse]
