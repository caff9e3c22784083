"""The trend for a terminal, and as JSON, ``perfci.trend/1``.

``docs/trend-report.md`` says what each field means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from statistics import median
from typing import Any

from jinja2 import Template

from perfci.report.clean import Clean, clean_line
from perfci.report.exporters.json import json_text
from perfci.report.site import words
from perfci.report.site.catalogue import SeriesStanding, TrendRow, TrendRows, catalogue, standings
from perfci.report.site.pages import scope_text, tiles
from perfci.report.site.words import sort_events
from perfci.report.templates import LIMIT, cut, markdown_environment, tidy
from perfci.trend import (
    Change,
    Drift,
    Replacement,
    Series,
    SeriesKey,
    Timeline,
    Trend,
    TrendEvent,
    dates_of,
)

MOST_LINES = 20
_MOST_REPLACED = 3
_LONGEST = 400
MOST_ROWS = 25
_MOST_NOTES = 10
TREND_SCHEMA = "perfci.trend/1"


def trend_lines(trend: Trend) -> tuple[str, ...]:
    """Return the lines to print: plain, clean text."""
    groups = sort_events(trend)
    listed = catalogue(trend, standings(trend))
    several = len(listed.labels) > 1
    first = (words.headline(trend, groups), words.too_early(trend), scope_text(trend, listed))
    lines = [f"{line}." for line in dict.fromkeys(filter(None, first))]
    rows = TrendRows(trend, listed, drawn=False)
    for title, items in (
        ("", (*groups.new_worse, *groups.new_better)),
        ("Still worse:", groups.open_worse),
        ("Slow drift:", groups.drifts_worse),
    ):
        lines += [title] if title and items else []
        shown = rows.of(items[:MOST_LINES])
        lines += [_line(row, several) for row in shown]
        lines += [f"  and {len(items) - len(shown)} more"] if len(items) > len(shown) else []
    replaced = trend.replacements[:_MOST_REPLACED]
    lines += [
        f"Environment replaced: {words.replacement_text(replacement)}" for replacement in replaced
    ]
    lines += [f"Note: {clean_line(note, _LONGEST)}" for note in trend.notes]
    return tuple(lines)


def _line(row: TrendRow, several: bool) -> str:
    parts = (
        f"{row.size} {words.meaning(row.worse)}",
        f"{row.case} {row.metric}",
        row.environment if several else "",
        row.commits,
        row.date,
        row.note,
        f"id {row.id}" if row.id else "",
    )
    return "  " + ", ".join(part for part in parts if part)


def render_trend_markdown(trend: Trend, limit: int = LIMIT) -> str:
    """Return what moved since last time, the worst first, and folded what is open or accepted."""
    groups = sort_events(trend)
    listed = catalogue(trend, standings(trend))
    new = (*groups.new_worse, *groups.new_better)
    accepted = [event for event in groups.earlier if event.status == "acknowledged"]
    headline, early = words.headline(trend, groups), words.too_early(trend)
    rows = TrendRows(trend, listed, drawn=False)
    text = _template().render(
        headline=headline,
        early="" if early == headline else early,
        still=words.still_open(groups),
        since=trend.reported_before,
        scope=scope_text(trend, listed),
        **rows.first("new", new, MOST_ROWS),
        **rows.first("open", groups.open_worse, MOST_ROWS),
        **rows.first("drifts", groups.drifts_worse, MOST_ROWS),
        **rows.first("accepted", accepted, MOST_ROWS),
        replaced=[
            words.replacement_text(replacement) for replacement in trend.replacements[:_MOST_NOTES]
        ],
        several=len(listed.labels) > 1,
        tiles=tiles(trend.health),
        notes=trend.notes[:_MOST_NOTES],
        notes_more=max(0, len(trend.notes) - _MOST_NOTES),
    )
    return cut(tidy(text), limit)


@cache
def _template() -> Template:
    return markdown_environment().get_template("trend/trend.md.j2")


def trend_json(trend: Trend) -> Clean:
    """Return ``trend`` as JSON. What is unknown or not a number is null."""
    standing = standings(trend)
    by_key = {series.key: series for series in trend.series}
    health = asdict(trend.health)
    dates = {key: dates_of(timeline) for key, timeline in trend.timelines.items()}
    plain = {
        "schema": TREND_SCHEMA,
        "perfci_version": trend.perfci_version,
        "created_at": trend.created_at,
        "environments": list(map(_environment, trend.timelines.values())),
        "changes": [_change(change, trend, by_key) for change in trend.changes],
        "events": list(map(_event, trend.events)),
        "replacements": list(map(_replacement, trend.replacements)),
        "drifts": [_drift(drift, by_key) for drift in trend.drifts],
        "health": health
        | {
            "false_alarm_rate": trend.health.false_alarm_rate,
            "inconclusive_share": trend.health.inconclusive_share,
        },
        "series": [
            _series(
                series, standing.get(series.key), trend.timelines[series.key.environment], dates
            )
            | {"gone": series.key in trend.gone}
            for series in trend.series
        ],
        "releases": {sha: ", ".join(names) for sha, names in trend.releases.items()},
        "notes": list(trend.notes),
    }
    return json_text(plain, indent=1)


def _environment(timeline: Timeline) -> dict[str, Any]:
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


def _change(change: Change, trend: Trend, by_key: dict[SeriesKey, Series]) -> dict[str, Any]:
    series = by_key.get(change.series)
    subject = ""
    if series is not None:
        row = int(series.rows[change.after])
        subject = trend.timelines[series.key.environment].runs[row].subject
    return {
        "id": change.id,
        **_named(change.series, series),
        "kind": change.kind,
        "status": change.status,
        "worse": change.worse,
        "sha_before": change.commits[0],
        "sha_after": change.commits[1],
        "sha_before_lo": change.commits_within[0],
        "sha_after_hi": change.commits_within[1],
        "subject": subject,
        "at": change.at,
        "ratio": change.ratio,
        "ratio_lo": change.ratio_lo,
        "ratio_hi": change.ratio_hi,
        "difference": change.difference,
        "p": change.p,
        "q": change.q,
        "confidence": change.confidence,
        "first_seen_at": change.first_seen_at,
        "note": change.note,
        "benchmark_changed": change.benchmark_changed,
    }


def _event(event: TrendEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "kind": event.kind,
        "status": event.status,
        "environment": event.environment,
        "worse": event.worse,
        "series": event.series,
        "measured": event.measured,
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
    }


def _replacement(replacement: Replacement) -> dict[str, Any]:
    facts = [{"name": name, "old": old, "new": new} for name, old, new in replacement.facts]
    return asdict(replacement) | {"facts": facts}


def _drift(drift: Drift, by_key: dict[SeriesKey, Series]) -> dict[str, Any]:
    fields = asdict(drift)
    del fields["series"]
    return {**_named(drift.series, by_key.get(drift.series)), **fields}


def _series(
    series: Series,
    standing: SeriesStanding | None,
    timeline: Timeline,
    dates: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    count = len(series.values)
    newest = int(series.rows[-1]) if count else None
    return {
        **_named(series.key, series),
        "direction": series.direction,
        "status": standing.word if standing else "steady",
        "new": standing.new if standing else False,
        "points": count,
        "latest": float(series.values[-1]) if count else None,
        "latest_sha": None if newest is None else timeline.runs[newest].sha,
        "latest_at": None if newest is None else dates[series.key.environment][newest],
    }


def _named(key: SeriesKey, series: Series | None) -> dict[str, Any]:
    return {
        "case": key.case,
        "metric": key.metric,
        "environment": key.environment,
        "unit": series.unit if series else None,
    }
