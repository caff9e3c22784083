"""Head's values for the PyTorch OSS benchmark database, schema v3, which PyTorch's HUD shows.

The schema is that of test-infra's table ``benchmark.oss_ci_benchmark_v3``. Its action
``upload-benchmark-results`` adds the repository, commit, job and runner to each record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfci.report.clean import Clean, clean_line
from perfci.report.measured import HeadValue, axis_labels, head_values

if TYPE_CHECKING:
    from perfci.model.report import Report

HELP = "Write head's values here, for PyTorch's benchmark database (schema v3)."
_SCALES = {"s": ("us", 1e6)}
"""HUD cuts values to two decimals: a latency in seconds would be shown as 0."""


def render(report: Report) -> Clean:
    """Return a list of records, one per row."""
    from perfci.report.exporters.json import json_text

    device = _device(report.environment.facts)
    return json_text([_record(value, device) for value in head_values(report, _SCALES)])


def _record(value: HeadValue, device: dict[str, str]) -> dict[str, Any]:
    axes = axis_labels(value.case)
    unit = f"({value.unit})" if value.unit else ""
    return {
        "benchmark": {
            "name": "perfci",
            "dtype": axes.get("dtype", ""),
            "extra_info": {**device, **axes},
        },
        "model": {"name": value.case, "backend": axes.get("mode", "")},
        "metric": {
            "name": f"{value.metric}{unit}",
            "benchmark_values": value.values or (value.value,),
            "extra_info": {"status": value.row.status, "better": value.row.direction},
        },
    }


def _device(facts: Any) -> dict[str, str]:
    """Return the facts of the device. HUD groups by them if a record names no runner."""
    name = facts.get("device_name", "cpu")
    if name == "cpu":
        device, arch = "cpu", facts.get("cpu", facts.get("machine", ""))
    else:
        device, arch = facts.get("device_type", "rocm" if "hip" in facts else "cuda"), name
    named = {"device": device, "arch": arch, "torch": facts.get("torch", "")}
    return {key: clean_line(text) for key, text in named.items() if text}
