"""pytest-benchmark's files: what its versions write differently, and what they leave out."""

from __future__ import annotations

import pytest

from tests.importers.samples import only_run, plain, points, read, why

VERSIONS = ("3.2.3", "3.4.1", "4.0.0", "5.3.1")
CASES = {
    "bench_sorting.py::test_plain",
    *(
        f"bench_sorting.py::test_sorting[order={order},size={size}]"
        for order in ("rising", "random;ly")
        for size in (10, 100)
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_gives_the_same_cases(version: str) -> None:
    name = f"pytest-benchmark-{version}.json"
    foreign = read(name)
    assert {case for case, _ in points(foreign)} == CASES
    told = plain(name)["benchmarks"][0]["stats"]
    case = f"bench_sorting.py::{plain(name)['benchmarks'][0]['name']}"
    if "[" not in case:
        assert points(foreign)[case, "latency_p50"].value == told["median"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_gives_the_commit_its_branch_and_times(version: str) -> None:
    run = only_run(read(f"pytest-benchmark-{version}.json"))
    assert run.sha == "8556e74300d4a1e89ea88664b95f7504abbff60f"
    assert run.branch == "master"
    assert run.committed_at == "2026-11-21T15:38:35+00:00"
    assert run.measured_at[:13] == "2026-11-21T15"
    assert run.runner == "bench-1"
    assert run.environment.key.startswith("pytest-benchmark-linux-x86_64-py3.11-")


def test_a_real_suite_is_read_in_seconds_without_a_commit() -> None:
    foreign = read("pytest-benchmark-tensordict.json")
    case = "pytree_benchmarks_test.py::test_reshape_pytree"
    found = points(foreign)
    assert found[case, "latency_p50"].value == 1.2589000107254833e-05
    assert found[case, "latency_mean"].value == 2.015056878804752e-05
    assert found[case, "latency_min"].value == 1.2168000012025004e-05
    assert len(found) == 30
    assert only_run(foreign).sha == ""  # it says "unversioned"


def test_changes_that_no_commit_holds_are_said() -> None:
    file = plain("pytest-benchmark-5.3.1.json")
    file["commit_info"]["dirty"] = True
    foreign = read(file)
    assert "no commit holds" in foreign.notes[0]
    assert only_run(foreign).environment.facts["note_dirty"] == "true"


def test_a_number_that_no_float_holds_is_skipped_and_the_others_stay() -> None:
    file = plain("pytest-benchmark-5.3.1.json")
    file["benchmarks"] = [one for one in file["benchmarks"] if not one["params"]]
    file["benchmarks"][0]["stats"]["mean"] = 10**400
    foreign = read(file)
    case = "bench_sorting.py::test_plain"
    assert set(points(foreign)) == {(case, "latency_p50"), (case, "latency_min")}
    assert why(foreign, f"{case} latency_mean") == "its value is not a finite number"


def test_a_benchmark_without_statistics_failed() -> None:
    file = plain("pytest-benchmark-5.3.1.json")
    file["benchmarks"][0] |= {"stats": None, "fullname": "b.py::test_x", "params": None}
    file["benchmarks"].append(7)
    foreign = read(file)
    assert only_run(foreign).failed == {"b.py::test_x": "it failed: its statistics are missing"}
    assert "got `int`" in why(foreign, "benchmark 6")
