"""pyperf's files: processes as workers, without calibration and warm-ups."""

from __future__ import annotations

import pytest

from perfci.errors import DamagedFile
from tests.importers.samples import only_run, plain, points, read, why


def test_a_suite_gives_one_value_a_process_and_pyperfs_own_mean() -> None:
    found = points(read("pyperf-einops.json"))
    one = found["einops_rearrange", "latency_mean"]
    assert len(one.values) == 4  # 5 runs, one of them calibrated
    assert one.value == pytest.approx(3.84e-06, abs=5e-9)  # `pyperf stats` 2.10: 3.84 us
    assert found["torch_matmul_64", "latency_mean"].value == pytest.approx(6.41e-06, abs=5e-9)


def test_warm_ups_are_in_no_value() -> None:
    file = plain("pyperf-einops.json")
    for run in file["benchmarks"][0]["runs"]:
        run["warmups"] = [[1, 1000.0]]
    assert points(read(file)) == points(read("pyperf-einops.json"))


def test_a_single_old_benchmark_is_read_with_its_machine() -> None:
    run = only_run(read("pyperf-telco.json"))
    (one,) = run.points
    assert one.case == "telco"
    assert one.value == pytest.approx(0.0225, abs=5e-5)  # `pyperf stats`: 22.5 ms
    assert len(one.values) == 40
    assert run.runner == "selma"
    assert run.measured_at == "2016-10-21T03:14:19+00:00"
    assert run.environment.facts["cpu"] == "Intel(R) Core(TM) i7-3520M CPU @ 2.90GHz"


def test_the_values_of_format_5_are_called_samples() -> None:
    file = plain("pyperf-telco.json")
    file["version"] = 5
    for benchmark in file["benchmarks"]:
        for run in benchmark["runs"]:
            run["samples"] = run.pop("values", [])
    assert points(read(file)) == points(read("pyperf-telco.json"))


def test_the_commit_that_pyperformance_notes_is_taken() -> None:
    file = plain("pyperf-telco.json")
    file["metadata"] |= {
        "commit_id": "A" * 40,
        "commit_branch": "main",
        "commit_date": "2016-10-20T12:00:00+02:00",
    }
    run = only_run(read(file))
    assert (run.sha, run.branch) == ("a" * 40, "main")
    assert run.committed_at == "2016-10-20T10:00:00+00:00"


def test_memory_is_in_bytes_and_a_strange_unit_is_skipped() -> None:
    file = plain("pyperf-einops.json")
    file["metadata"].pop("unit")
    file["benchmarks"][0]["metadata"]["unit"] = "byte"
    file["benchmarks"][1]["metadata"]["unit"] = "apple"
    foreign = read(file)
    assert set(points(foreign)) == {("einops_rearrange", "peak_host_memory")}
    assert why(foreign, "torch_matmul_64") == "its unit is not known: apple"


def test_benchmarks_of_two_machines_are_two_runs() -> None:
    file = plain("pyperf-einops.json")
    del file["metadata"]["hostname"]
    for benchmark, host in zip(file["benchmarks"], ("a", "b"), strict=True):
        benchmark["metadata"]["hostname"] = host
    assert {run.runner for run in read(file).runs} == {"a", "b"}


def test_calibration_alone_is_a_failure_and_nameless_or_broken_ones_are_skipped() -> None:
    file = plain("pyperf-einops.json")
    first, second = file["benchmarks"]
    first["runs"] = first["runs"][:1]
    del second["metadata"]["name"]
    file["benchmarks"].append({"runs": [{"values": ["fast"]}]})
    vast = {"runs": [{"values": [1e308, 1e308]}], "metadata": {"name": "vast"}}
    file["benchmarks"].append(vast)
    foreign = read(file)
    assert only_run(foreign).failed == {"einops_rearrange": "it has no values, only calibration"}
    assert why(foreign, "benchmark 2") == "it has no name"
    assert "got `str`" in why(foreign, "benchmark 3")
    assert why(foreign, "vast") == "one of its values is no number that can be"


def test_an_unknown_format_is_refused_with_what_to_do() -> None:
    file = plain("pyperf-telco.json")
    file["version"] = "2.0"
    with pytest.raises(DamagedFile, match=r"format 2\.0; formats 5, 6 and 1\.0") as caught:
        read(file)
    assert "pyperf convert" in caught.value.advice
