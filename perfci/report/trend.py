"""An analysed history for programs: as JSON, ``perfci.trend/1``, and as OpenMetrics.

``docs/reference/fields.toml`` says what each field means. The OpenMetrics text has a trend's latest
values and statuses, for Prometheus. It uses gauges only, without time stamps. So the text is also
valid in the older Prometheus format, without ``info`` and ``stateset``: node_exporter's textfile
collector takes no other. Rules: https://github.com/prometheus/OpenMetrics, version 1.0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

from perfci.report.clean import Clean
from perfci.report.exporters.json import json_text
from perfci.report.site.catalogue import SeriesStanding, standings
from perfci.report.site.forge_pages import pull_request
from perfci.report.site.words import bisect_command, sort_events
from perfci.trend import (
    Change,
    ChangeStatus,
    Drift,
    EventKind,
    Series,
    SeriesKey,
    Timeline,
    Trend,
    TrendEvent,
    Withdrawal,
    dates_of,
)

if TYPE_CHECKING:
    from prometheus_client.core import Metric

TREND_SCHEMA = "perfci.trend/1"
_UNITS = {
    "s": "seconds",
    "items/s": "items_per_second",
    "bytes/s": "bytes_per_second",
    "bytes/call": "bytes_per_call",
    "J/call": "joules_per_call",
    "count": "",
    "flop": "",
}
"""Endings of names, by unit. Counts have no ending: their names say what is counted, and
``_count`` is reserved."""
_RESERVED = ("_total", "_created", "_bucket", "_sum", "_count", "_gsum", "_gcount", "_info")
"""Endings that OpenMetrics reserves for other types than gauges."""
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
_STATUSES: tuple[ChangeStatus, ...] = ("new", "known", "acknowledged", "fixed")
_KINDS: tuple[EventKind, ...] = ("code", "environment", "excursion")
_WAYS = ("worse", "better")

Sample = tuple[Mapping[str, str], float | None]
"""A sample's labels and its value. A sample without a value is left out."""


def trend_json(trend: Trend) -> Clean:
    """Return ``trend`` as JSON. A value that is unknown or not a number is null."""
    standing = standings(trend)
    unmeasured = {event.id for event in sort_events(trend).unmeasured}
    by_key = {series.key: series for series in trend.series}
    health = asdict(trend.health)
    dates = {key: dates_of(timeline) for key, timeline in trend.timelines.items()}
    plain = {
        "schema": TREND_SCHEMA,
        "perfci_version": trend.perfci_version,
        "created_at": trend.created_at,
        "environments": list(map(_plain_environment, trend.timelines.values())),
        "changes": [_plain_change(change, trend, by_key) for change in trend.changes],
        "events": [
            _plain_event(event, trend, by_key) | {"unmeasured": event.id in unmeasured}
            for event in trend.events
        ],
        "withdrawn": [_plain_withdrawal(entry, by_key) for entry in trend.withdrawn],
        "drifts": [_plain_drift(drift, by_key) for drift in trend.drifts],
        "health": health
        | {
            "false_alarm_rate": trend.health.false_alarm_rate,
            "inconclusive_share": trend.health.inconclusive_share,
        },
        "series": [
            _plain_series(
                series, standing.get(series.key), trend.timelines[series.key.environment], dates
            )
            | {"gone": series.key in trend.gone}
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
        **_fields(change, "first_seen_at", "note", "benchmark_changed", "state"),
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


def _plain_withdrawal(withdrawal: Withdrawal, by_key: Mapping[SeriesKey, Series]) -> dict[str, Any]:
    change = withdrawal.change
    return {
        "id": change.id,
        **_plain_key(change.series, by_key.get(change.series)),
        "worse": change.worse,
        "sha_before": change.sha_before,
        "sha_after": change.sha_after,
        "first_seen_at": change.first_seen_at,
        "ratio": withdrawal.ratio,
        "runs_gone": withdrawal.runs_gone,
        "part_of": withdrawal.part_of or None,
    }


def _plain_drift(drift: Drift, by_key: dict[SeriesKey, Series]) -> dict[str, Any]:
    fields = asdict(drift)
    del fields["series"]
    return {**_plain_key(drift.series, by_key.get(drift.series)), **fields}


def _plain_series(
    series: Series,
    standing: SeriesStanding | None,
    timeline: Timeline,
    dates: Mapping[str, Sequence[str]],
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
        "latest_at": None if newest is None else dates[series.key.environment][newest],
    }


def _plain_key(key: SeriesKey, series: Series | None) -> dict[str, Any]:
    return {
        "case": key.case,
        "metric": key.metric,
        "environment": key.environment,
        "unit": series.unit if series else None,
    }


def render_openmetrics(trend: Trend) -> str:
    """Return ``trend`` as OpenMetrics text. A family without samples is left out."""
    fixed = (*_about(trend), *_changes(trend), *_events(trend), *_health(trend))
    from prometheus_client.core import CollectorRegistry
    from prometheus_client.openmetrics.exposition import generate_latest

    registry = CollectorRegistry()
    registry.register(
        _Families((*fixed, *_values(trend.series, {family.name for family in fixed})))
    )
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


class _Families:
    """A collector of finished metric families, which is what a registry takes."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return (family for family in self._families if family.samples)


def _gauge(name: str, help_: str, samples: Iterable[Sample], unit: str = "") -> Metric:
    from prometheus_client.core import Metric

    family = Metric(name, help_, "gauge", unit)
    for labels, value in samples:
        if value is not None:
            shown = {label: _visible(text) for label, text in labels.items()}
            family.add_sample(name, shown, value)
    return family


def _about(trend: Trend) -> Iterator[Metric]:
    latest = [
        (
            {"environment": name},
            max(filter(None, (_seconds(run.measured_at) for run in line.runs)), default=None),
        )
        for name, line in sorted(trend.timelines.items())
    ]
    version = [({"version": trend.perfci_version}, 1)]
    yield _gauge("perfci_build_info", "The version of perfci that wrote this; always 1.", version)
    yield _gauge(
        "perfci_trend_created_timestamp_seconds",
        "When the history was analysed.",
        [({}, _seconds(trend.created_at))],
        "seconds",
    )
    yield _gauge(
        "perfci_latest_run_timestamp_seconds",
        "When an environment was last measured.",
        latest,
        "seconds",
    )


def _changes(trend: Trend) -> Iterator[Metric]:
    newest: dict[SeriesKey, Change] = {}
    for change in trend.changes:
        if change.series not in newest or change.after > newest[change.series].after:
            newest[change.series] = change
    counted = Counter(
        (change.series.environment, change.status, _way(change)) for change in trend.changes
    )
    yield _gauge(
        "perfci_changes",
        "How many change points there are.",
        (
            ({"environment": name, "status": status, "way": way}, counted[name, status, way])
            for name, status, way in product(sorted(trend.timelines), _STATUSES, _WAYS)
        ),
    )
    yield _gauge(
        "perfci_series_status",
        "The status of a series' newest change point, none without one; always 1.",
        (
            (_named(series.key) | _status(newest.get(series.key)), 1)
            for series in _ordered(trend.series)
        ),
    )
    in_order = sorted(trend.changes, key=lambda change: (change.series, change.after, change.id))
    yield _gauge(
        "perfci_change_ratio",
        "New level / old level at a change.",
        (
            (
                _named(change.series)
                | _status(change)
                | {"kind": change.kind, "change": change.id},
                change.ratio,
            )
            for change in in_order
        ),
        "ratio",
    )
    yield _gauge(
        "perfci_drift_ratio",
        "The last days / the last accepted level, where a series drifted.",
        (
            (_named(drift.series), drift.ratio)
            for drift in sorted(trend.drifts, key=lambda drift: drift.series)
        ),
        "ratio",
    )


def _events(trend: Trend) -> Iterator[Metric]:
    counts = Counter(
        (event.environment, event.kind, event.status, _way(event)) for event in trend.events
    )
    names = ("environment", "kind", "status", "way")
    yield _gauge(
        "perfci_events",
        "How many events there are.",
        (
            (dict(zip(names, key, strict=True)), counts[key])
            for key in product(sorted(trend.timelines), _KINDS, _STATUSES, _WAYS)
        ),
    )
    labels = {
        event.id: {"environment": event.environment, "event": event.id, "kind": event.kind}
        | {"status": event.status, "way": _way(event)}
        for event in trend.events
    }
    yield _gauge(
        "perfci_event_series",
        "How many series an event moved.",
        ((labels[event.id], float(event.series)) for event in trend.events),
    )
    yield _gauge(
        "perfci_event_cost_ratio",
        "The median of new level / old level over an event's series, above 1 for worse.",
        ((labels[event.id], median(event.costs)) for event in trend.events if event.costs),
        "ratio",
    )


def _health(trend: Trend) -> Iterator[Metric]:
    health = trend.health
    yield _gauge("perfci_gate_reports", "The gate's recorded reports.", [({}, health.reports)])
    yield _gauge(
        "perfci_gate_same_reports",
        "Those of a commit against itself.",
        [({}, health.same_reports)],
    )
    yield _gauge(
        "perfci_gate_false_alarm_ratio",
        "Failed reports of a commit against itself / all of these.",
        [({}, health.false_alarm_rate)],
        "ratio",
    )
    yield _gauge(
        "perfci_gate_inconclusive_ratio",
        "Inconclusive / all gating comparisons.",
        [({}, health.inconclusive_share)],
        "ratio",
    )
    yield _gauge(
        "perfci_missing_nights",
        "Dates that an environment has no run of.",
        (
            ({"environment": name}, len(dates))
            for name, dates in sorted(health.missing_nights.items())
        ),
    )


def _values(series: Iterable[Series], taken: set[str]) -> Iterable[Metric]:
    """Yield a family for each metric and unit. ``taken`` are the names already in use."""
    groups: dict[tuple[str, str], list[Sample]] = {}
    for line in _ordered(series):
        if len(line.values):
            sample = (_named(line.key, metric=False), float(line.values[-1]))
            groups.setdefault((line.key.metric, line.unit), []).append(sample)
    for (metric, unit), samples in sorted(groups.items()):
        name, shown_unit = _family_name(metric, unit, taken)
        taken.add(name)
        text = f"Latest {_plain(metric)} of a case, as measured on the branch's newest commit."
        yield _gauge(name, text, tuple(samples), shown_unit)


def _family_name(metric: str, unit: str, taken: set[str]) -> tuple[str, str]:
    """Return a metric family's name and unit. If it has a unit, its name has to end in that.

    A reserved or taken name gets the ending ``_value``, and so no unit.
    """
    suffix = _UNITS.get(unit, _plain(unit.replace("/", " per "))) if unit else ""
    name = f"perfci_{_plain(metric)}"
    if suffix and not name.endswith(f"_{suffix}"):
        name = f"{name}_{suffix}"
    if not name.endswith(_RESERVED) and name not in taken:
        return name, suffix
    number = 1
    while (other := f"{name}_value{number if number > 1 else ''}") in taken:
        number += 1
    return other, ""


def _named(key: SeriesKey, *, metric: bool = True) -> dict[str, str]:
    named = {"environment": key.environment, "case": key.case}
    return named | {"metric": key.metric} if metric else named


def _status(change: Change | None) -> dict[str, str]:
    if change is None:
        return {"status": "none", "way": "none"}
    return {"status": change.status, "way": _way(change)}


def _way(moved: Change | TrendEvent) -> str:
    return "worse" if moved.worse else "better"


def _ordered(series: Iterable[Series]) -> list[Series]:
    return sorted(series, key=lambda line: line.key)


def _visible(text: str) -> str:
    """Return ``text`` with invisible characters spelled out: different names then look different.

    The library escapes line breaks, quotes and backslashes.
    """
    return "".join(
        character if character.isprintable() or character == "\n" else f"\\u{ord(character):04x}"
        for character in text
    )


def _plain(text: str) -> str:
    return _NOT_IN_A_NAME.sub("_", text.lower()).strip("_")[:80] or "value"


def _seconds(text: str) -> float | None:
    """Return an ISO 8601 time in s since 1970, or None if ``text`` is no such time."""
    try:
        return datetime.fromisoformat(text).timestamp() or None
    except ValueError:
        return None
