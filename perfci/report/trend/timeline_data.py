"""One environment's nights, shared by all charts of that environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfci.report.clean import clean_line
from perfci.report.trend.catalogue import shown
from perfci.report.trend.script import script
from perfci.report.trend.words import short
from perfci.trend.series import Timeline, dates_of

_LONGEST_SUBJECT = 160


def timeline_file(
    timeline: Timeline, place: int, label: str, releases: Mapping[str, tuple[str, ...]]
) -> tuple[str, bytes]:
    """Return the data file of the ``place``-th environment; ``releases`` maps shas to names."""
    name = f"timeline-{place}"
    return f"data/{name}.js", script("timeline", str(place), _payload(timeline, label, releases))


def _payload(
    timeline: Timeline, label: str, releases: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    nights = timeline.nights
    runners = tuple(dict.fromkeys(night.runner for night in nights))
    places = {runner: place for place, runner in enumerate(runners)}
    return {
        "label": label,
        "key": shown(timeline.environment),
        "shas": [short(night.sha) for night in nights],
        "subjects": [clean_line(night.subject, _LONGEST_SUBJECT) for night in nights],
        "dates": [clean_line(moment[:10]) for moment in dates_of(timeline)],
        "measured": [clean_line(night.measured_at[:16]) for night in nights],
        "runners": [shown(runner) for runner in runners],
        "runner": [places[night.runner] for night in nights],
        "releases": [[row, clean_line(name, 60)] for row, name in _released(timeline, releases)],
        "facts": [
            [clean_line(fact, 60), clean_line(value, 200)]
            for fact, value in sorted(timeline.facts.items())
        ],
    }


def _released(
    timeline: Timeline, releases: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[int, str]]:
    """Yield each row with the releases that no earlier row has.

    Another machine may have had a release on another night, whose commit is here, too.
    """
    seen: set[str] = set()
    for row, night in enumerate(timeline.nights):
        new = [name for name in releases.get(night.sha, ()) if name not in seen]
        seen.update(new)
        if new:
            yield row, ", ".join(new)
