"""Head's values in Bencher's metric format (BMF), for ``bencher run --adapter json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.report.clean import Clean
from perfci.report.measured import HeadValue, head_values

if TYPE_CHECKING:
    from perfci.model.report import Report

HELP = "Write head's values here, in Bencher's metric format."
_SCALES = {"s": ("ns", 1e9)}
_MEASURES = {"latency_p50": "latency"}
"""Metrics under Bencher's own names. A project there has a threshold for ``latency``, which is in
ns, from the start."""


def render(report: Report) -> Clean:
    """Return each case's measures with their 95 % intervals, times in ns."""
    from perfci.report.exporters.json import json_text

    cases: dict[str, dict[str, dict[str, float]]] = {}
    for value in head_values(report, _SCALES):
        measure = _MEASURES.get(value.metric, value.metric)
        cases.setdefault(value.case, {})[measure] = _numbers(value)
    return json_text(cases)


def _numbers(value: HeadValue) -> dict[str, float]:
    if value.interval is None:
        return {"value": value.value}
    lower, upper = value.interval
    return {"value": value.value, "lower_value": lower, "upper_value": upper}
