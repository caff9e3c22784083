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
