"""Google Benchmark's files: repetitions, aggregates, units, counters, errors."""

from __future__ import annotations

import json
import statistics

import pytest

from perfci.errors import DamagedFile
from perfci.history.importers import read_foreign
from tests.importers.samples import only_run, plain, points, read, why

REPETITIONS = "google-benchmark-repetitions.json"
AGGREGATES = "google-benchmark-aggregates.json"
SIZE_8 = "sorting::sorting[size=8]"


def test_the_median_stands_for_repetitions() -> None:
    told = [
        one["real_time"]
        for one in plain(REPETITIONS)["benchmarks"]
        if one["run_name"] == "sorting/size:8" and one["run_type"] == "iteration"
    ]
    assert len(told) == 3
    one = points(read(REPETITIONS))[SIZE_8, "latency_mean"]
    assert one.value == pytest.approx(statistics.median(told) / 1e9, rel=1e-12)


def test_without_repetitions_the_median_is_taken_and_without_that_the_mean() -> None:
    file = plain(AGGREGATES)
    entries = {one["name"]: one for one in file["benchmarks"]}
    median, mean = entries["sorting/size:8_median"], entries["sorting/size:8_mean"]
    found = points(read(file))[SIZE_8, "latency_mean"].value
    assert found == pytest.approx(median["real_time"] / 1e9)
    file["benchmarks"].remove(median)
    found = points(read(file))[SIZE_8, "latency_mean"].value
    assert found == pytest.approx(mean["real_time"] / 1e9)


def test_counters_are_metrics_and_an_unknown_ones_direction_is_said_to_be_assumed() -> None:
    foreign = read(REPETITIONS)
    found = points(foreign)
    assert found[SIZE_8, "throughput"].direction == "higher"
    assert found[SIZE_8, "throughput"].unit == "items/s"
    assert found[SIZE_8, "items"].direction == "lower"
    assert foreign.notes == ("no file says which way counter items is better: lower is taken",)


def test_an_error_is_a_failure_with_its_message() -> None:
    foreign = read(REPETITIONS)
    assert only_run(foreign).failed == {"sorting::failing": "no such device"}
    assert why(foreign, "sorting::failing") == "no such device"


def test_a_commit_in_the_context_is_taken() -> None:
    assert only_run(read(AGGREGATES)).sha == "0123456789abcdef0123456789abcdef01234567"


def test_an_unknown_unit_and_a_strange_entry_are_skipped() -> None:
    file = plain("google-benchmark-small.json")
    file["benchmarks"] = [{"name": "a", "real_time": 1, "time_unit": "fortnight"}, [], {"name": 3}]
    foreign = read(file)
    assert foreign.runs[0].points == ()
    assert [one.what for one in foreign.skipped] == ["benchmark 1", "benchmark 2", "benchmark 3"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("nan", None),
        ("-nan(ind)", None),
        ("inf", None),
        ("-inf", None),
        ("NaN", None),
        ("-Infinity", None),
        ("12%", 0.12),
        ("12,5 %", 0.125),
        ("1,5", 1.5),
        ("-1,5e+03", -1500.0),
        ('7 "other": 8', 7.0),
        ('"12% of 1,5: nan"', ...),
    ],
)
@pytest.mark.parametrize("key", ["ratio", "real_time"])
def test_what_can_be_read_of_damaged_numbers_is_read_and_the_rest_is_named(
    written: str, value: float | None, key: str
) -> None:
    file = plain("google-benchmark-small.json")
    entry = {"name": "a", "run_name": "a", "time_unit": "s", "real_time": 3, "cpu_time": 4}
    file["benchmarks"] = [entry | {key: "@"}, {**entry, "name": "b", "run_name": "b"}]
    text = json.dumps(file).replace('"@"', written)
    foreign = read_foreign(text.encode(), "out.json")
    found = points(foreign)
    case = next((name for name, _ in found if name.endswith("a")), "")
    assert [name for name, metric in found if metric == "latency_mean" and name.endswith("b")]
    metric = "ratio" if key == "ratio" else "latency_mean"
    if value is ...:  # a text is no counter
        assert (case, metric) not in found
    elif value is None or (key == "real_time" and value < 0):
        assert (case, metric) not in found
        assert metric in " ".join(skipped.what for skipped in foreign.skipped)
    else:
        assert found[case, metric].value == pytest.approx(value)


@pytest.mark.parametrize("end", ["", '"real_time": 1.5', ", nan"])
def test_a_file_that_was_cut_off_is_damaged(end: str) -> None:
    text = json.dumps(plain("google-benchmark-small.json"))
    with pytest.raises(DamagedFile):
        read_foreign((text[: len(text) // 2] + end).encode(), "out.json")
