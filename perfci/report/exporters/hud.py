"""Head's values for the PyTorch OSS benchmark database, schema v3, which PyTorch's HUD shows.

The schema is that of test-infra's table ``benchmark.oss_ci_benchmark_v3``. Its action
``upload-benchmark-results`` adds the repository, commit, job and runner to each record.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from perfci.report.clean import Clean, clean_line

if TYPE_CHECKING:
    from perfci.model.report import Comparison, Estimate, Report

HELP = "Write head's values here, for PyTorch's benchmark database (schema v3)."


def render(report: Report) -> Clean:
    """Return a list of records, one for each row with a finite value of head."""
    from perfci.report.exporters.json import json_text

    device = _device(report.environment.facts)
    return json_text(
        [
            _record(row, row.head, row.head.center, device)
            for row in report.results
            if row.head and row.head.center is not None and math.isfinite(row.head.center)
        ]
    )


def _record(
    row: Comparison, head: Estimate, center: float, device: dict[str, str]
) -> dict[str, Any]:
    case = clean_line(row.case)
    axes = _axis_labels(case)
    # HUD cuts values to two decimals: a latency in seconds would be shown as 0
    unit, scale = ("us", 1e6) if row.unit == "s" else (clean_line(row.unit, 50), 1.0)
    shown_unit = f"({unit})" if unit else ""
    values = [value * scale for value in head.values if math.isfinite(value)]
    return {
        "benchmark": {
            "name": "perfci",
            "dtype": axes.get("dtype", ""),
            "extra_info": {**device, **axes},
        },
        "model": {"name": case, "backend": axes.get("mode", "")},
        "metric": {
            "name": f"{clean_line(row.metric, 100)}{shown_unit}",
            "benchmark_values": values or [center * scale],
            "extra_info": {"status": row.status, "better": row.direction},
        },
    }


def _axis_labels(case: str) -> dict[str, str]:
    """Return the axes in a case's id, each with its label."""
    inner = case.partition("[")[2].removesuffix("]")
    pairs = (part.partition("=") for part in inner.split(","))
    return {axis: label for axis, equals, label in pairs if equals}


def _device(facts: Any) -> dict[str, str]:
    """Return the facts of the device. HUD groups by them if a record names no runner."""
    name = facts.get("device_name", "cpu")
    if name == "cpu":
        device, arch = "cpu", facts.get("cpu", facts.get("machine", ""))
    else:
        device, arch = facts.get("device_type", "rocm" if "hip" in facts else "cuda"), name
    named = {"device": device, "arch": arch, "torch": facts.get("torch", "")}
    return {key: clean_line(text) for key, text in named.items() if text}
