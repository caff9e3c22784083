"""An analysed history for programs, as JSON. ``docs/reference/fields.toml`` explains the fields."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import Any

from perfci.report.clean import Clean
from perfci.report.exporters.json import json_text
from perfci.report.site.catalogue import SeriesStanding, standings
from perfci.report.site.words import bisect_command, pull_request
from perfci.trend import Change, Drift, Series, SeriesKey, Timeline, Trend, TrendEvent

TREND_SCHEMA = "perfci.trend/1"


def trend_json(trend: Trend) -> Clean:
    """Return ``trend`` as JSON. A value that is unknown or not a number is null."""
    standing = standings(trend)
    by_key = {series.key: series for series in trend.series}
    plain = {
        "schema": TREND_SCHEMA,
        "perfci_version": trend.perfci_version,
        "created_at": trend.created_at,
        "environments": list(map(_plain_environment, trend.timelines.values())),
        "changes": [_plain_change(change, trend, by_key) for change in trend.changes],
        "events": [_plain_event(event, trend, by_key) for event in trend.events],
        "drifts": [_plain_drift(drift, by_key) for drift in trend.drifts],
        "series": [
            _plain_series(series, standing.get(series.key), trend.timelines[series.key.environment])
            for series in trend.series
        ],
        "releases": {sha: ", ".join(names) for sha, names in trend.releases.items()},
        "notes": list(trend.notes),
    }
    return json_text(plain, indent=1)


def _plain_environment(timeline: Timeline) -> dict[str, Any]:
    runs = timeline.runs
    return {
        "key": timeline.environment,
        "facts": dict(timeline.facts),
        "runs": len(runs),
        "oldest_sha": runs[0].sha if runs else None,
        "newest_sha": runs[-1].sha if runs else None,
        "newest_at": max((run.measured_at for run in runs), default=None),
        "vanished": list(timeline.vanished),
    }


def _plain_change(change: Change, trend: Trend, by_key: dict[SeriesKey, Series]) -> dict[str, Any]:
    return {
        "id": change.id,
        **_plain_key(change.series, by_key.get(change.series)),
        **_fields(change, "kind", "status", "worse"),
        "sha_before": change.commits[0],
        "sha_after": change.commits[1],
        "sha_before_lo": change.commits_within[0],
        "sha_after_hi": change.commits_within[1],
        "subject": _subject(change, trend, by_key),
        **_fields(change, "at", "ratio", "ratio_lo", "ratio_hi", "difference", "p", "q"),
        **_fields(change, "first_seen_at", "note", "benchmark_changed"),
    }


def _subject(change: Change, trend: Trend, by_key: dict[SeriesKey, Series]) -> str:
    series = by_key.get(change.series)
    if series is None:
        return ""
    return trend.timelines[series.key.environment].runs[int(series.rows[change.after])].subject


def _fields(record: Change | TrendEvent, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _plain_event(
    event: TrendEvent, trend: Trend, by_key: dict[SeriesKey, Series]
) -> dict[str, Any]:
    _, pull_request_page = pull_request(trend.forge, _subject(event.outstanding[0], trend, by_key))
    return {
        **_fields(event, "id", "kind", "status", "environment", "worse", "series", "measured"),
        "benchmarks": list(event.benchmarks),
        "median_cost": median(event.costs) if event.costs else None,
        "largest_cost": event.largest_cost,
        "sha_before": event.commits[0],
        "sha_after": event.commits[1],
        "at": event.at,
        "ended_at": event.ended_at or None,
        "evidence": list(event.evidence),
        "changes": [change.id for change in event.changes],
        "back": [change.id for change in event.back],
        "bisect": bisect_command(event) or None,
        "pull_request": pull_request_page or None,
    }


def _plain_drift(drift: Drift, by_key: dict[SeriesKey, Series]) -> dict[str, Any]:
    fields = asdict(drift)
    del fields["series"]
    return {**_plain_key(drift.series, by_key.get(drift.series)), **fields}


def _plain_series(
    series: Series,
    standing: SeriesStanding | None,
    timeline: Timeline,
) -> dict[str, Any]:
    count = len(series.values)
    newest = int(series.rows[-1]) if count else None
    return {
        **_plain_key(series.key, series),
        "direction": series.direction,
        "status": standing.word if standing else "steady",
        "new": standing.new if standing else False,
        "points": count,
        "latest": float(series.values[-1]) if count else None,
        "latest_sha": None if newest is None else timeline.runs[newest].sha,
        "latest_at": None if newest is None else timeline.dates[newest],
    }


def _plain_key(key: SeriesKey, series: Series | None) -> dict[str, Any]:
    return {
        "case": key.case,
        "metric": key.metric,
        "environment": key.environment,
        "unit": series.unit if series else None,
    }
