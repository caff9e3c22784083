"""One environment's nights, shared by all charts of that environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfci.report.clean import clean_line
from perfci.report.trend.catalogue import shown
from perfci.report.trend.script import script
from perfci.trend.series import Timeline

_SHA = 12
_LONGEST_SUBJECT = 160


def timeline_file(
    timeline: Timeline, place: int, label: str, releases: Mapping[str, str]
) -> tuple[str, bytes]:
    """Return the data file of the ``place``-th environment; ``releases`` maps shas to names."""
    name = f"timeline-{place}"
    return f"data/{name}.js", script("timeline", str(place), _payload(timeline, label, releases))


def _payload(timeline: Timeline, label: str, releases: Mapping[str, str]) -> dict[str, Any]:
    nights = timeline.nights
    runners = tuple(dict.fromkeys(night.runner for night in nights))
    places = {runner: place for place, runner in enumerate(runners)}
    released: dict[str, int] = {}
    for row, night in enumerate(nights):
        if night.sha in releases:  # another machine may have had the release on another night
            released.setdefault(releases[night.sha], row)
    return {
        "label": label,
        "key": shown(timeline.environment),
        "shas": [clean_line(night.sha[:_SHA]) for night in nights],
        "subjects": [clean_line(night.subject, _LONGEST_SUBJECT) for night in nights],
        "dates": [clean_line((night.committed_at or night.measured_at)[:10]) for night in nights],
        "measured": [clean_line(night.measured_at[:16]) for night in nights],
        "runners": [shown(runner) for runner in runners],
        "runner": [places[night.runner] for night in nights],
        "releases": [[row, clean_line(name, 60)] for name, row in released.items()],
        "facts": [
            [clean_line(fact, 60), clean_line(value, 200)]
            for fact, value in sorted(timeline.facts.items())
        ],
    }
