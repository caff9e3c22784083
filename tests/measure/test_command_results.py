"""A command's files of results as metrics: names, the median of runs, what gates, what failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfci.errors import DamagedFile, UsageError
from perfci.measure.command_results import with_results
from perfci.model.worker import Measurement, ResultsFile


def file(content: Any, form: str = "") -> ResultsFile:
    text = content if isinstance(content, str) else json.dumps(content)
    return ResultsFile("out.json", text, form, 0.03, "warn")


def google(*entries: dict[str, Any], program: str = "./bin/sorting") -> ResultsFile:
    context = {"num_cpus": 2, "library_build_type": "release", "executable": program}
    return file({"context": context, "benchmarks": list(entries)})


def entry(name: str, nanoseconds: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "real_time": nanoseconds, "cpu_time": 1.0, "time_unit": "ns", **more}


def read(*files: ResultsFile) -> Measurement:
    raw = Measurement(
        samples_ns=(), blocks=(), first_call_s=1.0, values={"latency_p50": 1.0}, results=files
    )
    return with_results(raw)


def test_the_median_of_a_workers_runs_stands_for_each_result() -> None:
    runs = [
        google(entry("BM_copy/8/threads:2", time), entry("BM_fill<int>", 7)) for time in (3, 9, 4)
    ]
    measured = read(*runs)
    assert measured.values["latency_p50"] == 1.0
    assert measured.values["BM_copy.arg1-8.threads-2.latency_mean"] == pytest.approx(4e-9)
    assert measured.values["BM_fill_int.latency_mean"] == pytest.approx(7e-9)
    assert not measured.results


def test_what_stands_for_a_result_gates_as_asked_for_and_all_else_informs() -> None:
    metrics = {metric.name: metric for metric in read(google(entry("BM", 3, hits=2))).extra_metrics}
    main = metrics.pop("BM.latency_mean")
    assert (main.unit, main.kind, main.gate, main.threshold) == ("s", "per_worker", "warn", 0.03)
    assert {metric.gate for metric in metrics.values()} == {"info"}
    assert metrics.keys() == {"BM.cpu_time", "BM.hits"}


def test_names_that_become_alike_stay_two_and_long_ones_keep_their_difference() -> None:
    names = ["f(a)", "f{a}", "x" * 120 + "1", "x" * 120 + "2"]
    measured = read(google(*(entry(name, number) for number, name in enumerate(names, 1))))
    mains = [name for name in measured.values if "latency_p50" not in name]
    assert len(measured.extra_metrics) == len(mains) == 2 * len(names)
    assert max(map(len, mains)) <= 100


def test_a_result_that_failed_is_a_warning_with_its_reason() -> None:
    broken = entry("BM_broken", 1, error_occurred=True, error_message="out of memory")
    measured = read(google(entry("BM", 3), broken))
    assert measured.warnings == ("sorting::BM_broken: out of memory",)
    assert "BM.latency_mean" in measured.values


def test_a_file_without_results_is_an_error_that_names_it() -> None:
    with pytest.raises(DamagedFile, match=r"out\.json can't be read"):
        read(file("{"))
    with pytest.raises(UsageError, match=r"out\.json is not a file of results"):
        read(file({}))
    with pytest.raises(UsageError, match=r"out\.json holds no result"):
        read(google())
