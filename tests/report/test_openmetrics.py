"""The exported text, read by two real parsers: OpenMetrics' and the older one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
from prometheus_client.parser import text_string_to_metric_families as classic

from perfci.report.trend import render_openmetrics
from perfci.trend import SeriesKey, Trend
from tests.forges.trends import (
    CASE,
    ENVIRONMENT,
    KEY,
    change,
    drift,
    event,
    health,
    many,
    series,
    trend,
)
from tests.report.hostile import NAMES


def samples(told: Trend) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return the samples of each family, which both parsers have to read alike."""
    text = render_openmetrics(told)
    found: list[dict[str, list[tuple[dict[str, str], float]]]] = []
    for parse in (strict, classic):
        families: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in parse(text):
            for one in family.samples:
                families.setdefault(one.name, []).append((one.labels, one.value))
        found.append(families)
    assert found[0] == found[1]
    return found[0]


def units(told: Trend) -> dict[str, str]:
    return {family.name: family.unit for family in strict(render_openmetrics(told))}


def test_the_latest_value_of_each_case_is_there_with_its_unit() -> None:
    other = series(KEY._replace(case="decoder"), values=(3.0, 1.5))
    told = trend(series=(series(), other))
    labels = {"environment": ENVIRONMENT}
    assert samples(told)["perfci_latency_p50_seconds"] == [
        (labels | {"case": "decoder"}, 1.5),
        (labels | {"case": CASE}, 2.0),
    ]
    assert units(told)["perfci_latency_p50_seconds"] == "seconds"


def test_every_series_has_one_status_that_of_its_newest_change() -> None:
    old = change("old", before=0, after=1, worse=False, status="known")
    quiet = series(KEY._replace(case="quiet"))
    found = samples(trend(series=(series(), quiet), changes=(change(), old)))
    told = {labels["case"]: labels for labels, _ in found["perfci_series_status"]}
    assert (told[CASE]["status"], told[CASE]["way"]) == ("new", "worse")
    assert (told["quiet"]["status"], told["quiet"]["way"]) == ("none", "none")


def test_changes_are_counted_with_zeros_so_that_an_alert_has_something_to_watch() -> None:
    found = samples(trend())["perfci_changes"]
    counts = {(labels["status"], labels["way"]): value for labels, value in found}
    assert len(counts) == 8
    assert counts.pop(("new", "worse")) == 1
    assert set(counts.values()) == {0}


def test_events_are_counted_with_zeros_and_each_has_its_size() -> None:
    some = many(3, ratio=1.5)
    found = samples(trend(changes=some, events=(event(*some, identity="e1"),)))
    counts = {
        (labels["kind"], labels["status"], labels["way"]): value
        for labels, value in found["perfci_events"]
    }
    assert len(counts) == 24
    assert counts.pop(("code", "new", "worse")) == 1
    assert set(counts.values()) == {0}
    ((labels, series_moved),) = found["perfci_event_series"]
    assert (labels["event"], labels["way"], series_moved) == ("e1", "worse", 3)
    assert found["perfci_event_cost_ratio"] == [(labels, 1.5)]


def test_sizes_drift_and_health_are_told() -> None:
    found = samples(trend(drifts=(drift(),)))
    ((labels, ratio),) = found["perfci_change_ratio"]
    assert (ratio, labels["change"], labels["kind"]) == (1.25, "c1", "step")
    assert found["perfci_drift_ratio"][0][1] == 1.04
    assert found["perfci_gate_false_alarm_ratio"] == [({}, 0.05)]
    assert found["perfci_gate_inconclusive_ratio"] == [({}, 0.02)]
    assert found["perfci_missing_nights"] == [({"environment": ENVIRONMENT}, 1)]


def test_times_are_seconds_since_1970() -> None:
    found = samples(trend())
    assert found["perfci_trend_created_timestamp_seconds"] == [({}, 1794106800.0)]
    assert found["perfci_latest_run_timestamp_seconds"][0][1] == 1793829600.0


def test_what_nobody_knows_is_left_out() -> None:
    unknown = health(same_reports=0, same_failed=0, comparisons=0, inconclusive=0)
    found = samples(trend(health=unknown, changes=(change(ratio=None),), created_at="?"))
    for name in ("perfci_gate_false_alarm_ratio", "perfci_gate_inconclusive_ratio"):
        assert name not in found
    assert "perfci_change_ratio" not in found
    assert "perfci_trend_created_timestamp_seconds" not in found


@pytest.mark.parametrize(
    ("metric", "unit", "family", "shown"),
    [
        ("peak_host_memory", "bytes", "perfci_peak_host_memory_bytes", "bytes"),
        ("throughput", "items/s", "perfci_throughput_items_per_second", "items_per_second"),
        ("bytes_per_second", "bytes/s", "perfci_bytes_per_second", "bytes_per_second"),
        ("energy", "J/call", "perfci_energy_joules_per_call", "joules_per_call"),
        ("graph_breaks", "count", "perfci_graph_breaks", ""),
        ("jitter", "ratio", "perfci_jitter_ratio", "ratio"),
        ("value", "", "perfci_value", ""),
        ("value", "widgets/kg", "perfci_value_widgets_per_kg", "widgets_per_kg"),
        ("jobs_total", "", "perfci_jobs_total_value", ""),
        ("cache info", "", "perfci_cache_info_value", ""),
        ("changes", "", "perfci_changes_value", ""),
        ("Größe", "", "perfci_gr_e", ""),
        ("∞", "∞", "perfci_value", "value"),
    ],
)
def test_a_family_is_named_by_its_metric_and_unit(
    metric: str, unit: str, family: str, shown: str
) -> None:
    told = trend(series=(series(KEY._replace(metric=metric), unit),), changes=())
    assert [(labels, value) for labels, value in samples(told)[family] if "case" in labels]
    assert units(told)[family] == shown


def test_two_metrics_that_would_be_one_family_stay_two() -> None:
    keys = (KEY._replace(metric="a b"), KEY._replace(metric="a-b"), KEY._replace(metric="a_b"))
    found = samples(trend(series=tuple(series(key, "") for key in keys), changes=()))
    assert {"perfci_a_b", "perfci_a_b_value", "perfci_a_b_value2"} <= set(found)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_stay_labels(name: str) -> None:
    key = SeriesKey(name + "e", name + "c", name + "m")
    told = trend(series=(series(key, name),), changes=(change(name, key),), drifts=(drift(key),))
    ((labels, _),) = samples(told)["perfci_series_status"]
    assert set(labels) == {"environment", "case", "metric", "status", "way"}
    if name.isprintable():
        assert labels["case"] == name + "c"
    assert all(text.replace("\n", "").isprintable() for text in labels.values())
    render_openmetrics(told).encode()


def test_an_empty_history_is_a_text_too() -> None:
    found = samples(trend(timelines={}, series=(), changes=()))
    assert "perfci_build_info" in found
    assert render_openmetrics(trend()).endswith("\n# EOF\n")


DASHBOARD = Path(__file__).resolve().parents[2] / "examples" / "grafana.json"


def test_the_grafana_dashboard_asks_for_families_and_labels_that_there_are() -> None:
    found = samples(trend(drifts=(drift(),)))
    labels = {name: {label for one, _ in some for label in one} for name, some in found.items()}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [one["expr"] for panel in panels for one in panel["targets"]]
    assert len(asked) == 9
    for expression in asked:
        ((name, chosen),) = re.findall(r"(perfci_\w+)(?:\{(.*)\})?", expression)
        assert name in found, expression
        assert set(re.findall(r"(\w+)=", chosen)) <= labels[name], expression
