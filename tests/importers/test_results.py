"""NVBench's and vLLM's files, and a file that is asked to be of one format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfci.errors import UsageError
from perfci.history.importers import ForeignResults, read_foreign
from tests.importers.samples import only_run, points

FOLDER = Path(__file__).parent.parent / "data" / "results"


def plain(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def read(what: Any, form: str = "") -> ForeignResults:
    return read_foreign(json.dumps(what).encode(), "out.json", form)


def test_nvbench_has_the_devices_time_the_hosts_time_and_its_axes() -> None:
    found = points(read(plain("nvbench.json")))
    case = "single_float64_axis[Duration=0]"
    assert found[case, "device_time_mean"].value == 3.9224058844425625e-06
    assert found[case, "latency_mean"].value == 9.540251349146535e-06
    assert found[case, "batch_device_time_mean"].unit == "s"
    assert {metric for of, metric in found if of == "simple"} == {
        "batch_device_time_mean",
        "device_time_mean",
        "latency_mean",
    }


def test_nvbench_names_the_device_where_there_are_several_and_why_a_state_was_skipped() -> None:
    file = plain("nvbench.json")
    file["devices"].append({"id": 1, "name": "Quadro GV100"})
    state = file["benchmarks"][1]["states"][1]
    state |= {"is_skipped": True, "skip_reason": "too large"}
    run = only_run(read(file))
    skipped = f"single_float64_axis[Duration={state['axis_values'][0]['value']},device=0]"
    assert run.failed == {skipped: "it was skipped: too large"}
    assert "simple[device=0]" in {point.case for point in run.points}


def test_vllm_has_a_result_for_each_kind_of_time_and_of_rate() -> None:
    found = points(read(plain("vllm.json")))
    assert found["ttft", "latency_p50"].value == 0.055
    assert found["ttft", "latency_p99"].value == 0.09
    assert found["tpot", "latency_mean"].value == 0.0075
    assert found["output", "throughput"].direction == "higher"
    assert ("requests", "goodput") not in found  # nothing was asked of the requests
    assert only_run(read(plain("vllm.json"))).measured_at == "2026-01-02T03:04:05+00:00"


@pytest.mark.parametrize("change", [{"failed": 3}, {"failed": None, "completed": 97}])
def test_vllms_numbers_do_not_count_where_requests_failed(change: dict[str, Any]) -> None:
    run = only_run(read(plain("vllm.json") | change))
    assert not run.points
    assert run.failed["ttft"] == "3 requests failed"


def test_a_file_of_another_format_than_the_one_asked_for_is_refused() -> None:
    assert read(plain("vllm.json"), "vllm").runs
    with pytest.raises(UsageError, match="is not a file of results of nvbench"):
        read(plain("vllm.json"), "nvbench")
    with pytest.raises(UsageError, match="'nvbnch' is not a format") as refused:
        read(plain("vllm.json"), "nvbnch")
    assert "google-benchmark, nvbench, pytest" in refused.value.advice
