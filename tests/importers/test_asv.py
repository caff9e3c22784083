"""asv's results, as a file and as a folder."""

from __future__ import annotations

from tests.importers.samples import FOLDER, only_run, plain, points, read, read_folder, why

RESULTS = FOLDER / "asv-results"


def folder() -> dict[str, bytes]:
    return {str(path.relative_to(RESULTS)): path.read_bytes() for path in RESULTS.rglob("*.json")}


def test_a_real_file_of_layout_2_is_read_with_its_commit_times_and_machine() -> None:
    run = only_run(read("asv-2.json"))
    assert run.source == "asv"
    assert run.sha == "18523d1051e06efde0fd2e1407a13945292062c5"
    assert run.committed_at == "2021-04-30T10:59:34+00:00"  # date -u -d @1619780374
    assert run.measured_at == "2022-02-07T05:21:44+00:00"
    assert run.runner == "GH-Actions"
    assert run.environment.key.startswith("asv-gh_actions-virtualenv_py3.9-")
    assert run.environment.facts["os"] == "ubuntu-20.04"
    assert len(run.points) == 10


def test_each_type_of_benchmark_has_its_metric_and_unit() -> None:
    found = points(read("asv-2.json"))
    case = "benchmarks_for_map.TimeSuite.time_create_sunpy_map"
    assert found[case, "latency_p50"].value == 0.08421600100018622
    assert found[case, "latency_p50"].unit == "s"
    memory = found["benchmarks_for_map.PeakMemorySuite.peakmem_sunpy_map", "peak_host_memory"]
    assert (memory.value, memory.unit) == (112410624.0, "bytes")
    assert found["benchmarks_for_map.MemSuite.mem_sunpy_map", "object_size"].value == 280


def test_a_folder_gives_parameters_their_names_and_tracks_their_units() -> None:
    (foreign,) = read_folder(folder())
    found = points(foreign)
    name = "bench_sorting.Suite.time_sorted"
    assert (f"{name}[size=10,order=rising]", "latency_p50") in found
    assert found["bench_sorting.track_length", "value"].unit == "items"
    assert foreign.notes == ()


def test_what_failed_and_what_was_skipped_is_told_apart() -> None:
    (foreign,) = read_folder(folder())
    failed = only_run(foreign).failed
    assert set(failed) == {
        "bench_sorting.Suite.time_sorted[size=1000,order=rising]",
        "bench_sorting.time_broken",
    }
    assert "failed" in failed["bench_sorting.time_broken"]
    suite = "bench_sorting.Suite.time_sorted"
    assert why(foreign, suite) == "asv skipped 1 of its 4 combinations"
    assert {one.what for one in foreign.skipped} == {*failed, suite}


def test_a_file_alone_says_that_names_of_parameters_are_missing() -> None:
    path = "bench-1/1a7612ca-virtualenv-py3.11.json"
    foreign = read(folder()[path])
    name = "bench_sorting.Suite.time_sorted[param1=10,param2=rising]"
    assert (name, "latency_p50") in points(foreign)
    assert "benchmarks.json" in foreign.notes[0]


def test_a_broken_benchmark_leaves_the_others_alone() -> None:
    file = plain("asv-2.json")
    file["result_columns"] = ["result", "params"]
    file["results"] = {
        "text": "fast",
        "short": [[1.0], [["1", "2"]]],
        "endless": [None, [["1"] * 1000, ["2"] * 1000]],
        "below": [[-1.0], []],
        "vast": [[10**400], []],
        "time_below": [[-1.0], []],
    }
    foreign = read(file)
    assert [point.case for point in only_run(foreign).points] == ["below"]  # it needn't be a time
    assert "got `str`" in why(foreign, "text")
    assert why(foreign, "short") == "1 results for 2 combinations"
    assert why(foreign, "endless") == "1,000,000 combinations of parameters"
    assert "below zero" in why(foreign, "time_below latency_p50")
    assert why(foreign, "vast")
