"""A foreign file is known by its content; what isn't one says what it is, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfci.errors import DamagedFile, PerfciError, UsageError
from perfci.history.importers import foreign_parts, read_foreign
from perfci.model.codec import to_plain
from tests.importers.samples import FILES, content, only_run, plain, points, read, read_folder
from tests.report.hostile import NAMES

TOOLS = ("asv", "google-benchmark", "pytest-benchmark")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_tool_is_told_by_the_content_and_not_by_the_name(path: Path) -> None:
    foreign = read_foreign(path.read_bytes(), "something else.txt")
    assert foreign.tool == next(tool for tool in TOOLS if path.name.startswith(tool))
    assert {run.source for run in foreign.runs} == {foreign.tool}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_reading_twice_gives_the_same_runs_with_the_same_ids(path: Path) -> None:
    first = read_foreign(path.read_bytes(), "one")
    assert read_foreign(path.read_bytes(), "two") == first
    reordered = json.dumps(plain(path.name), sort_keys=True, indent=7).encode()
    again = read_foreign(reordered, "three")
    assert [run.id for run in again.runs] == [run.id for run in first.runs]


def test_another_value_is_another_run() -> None:
    file = plain("google-benchmark-small.json")
    before = only_run(read(file)).id
    file["benchmarks"][0]["real_time"] += 1
    assert only_run(read(file)).id != before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "can't be read: "),
        (b"\x00\xff", "can't be read: "),
        (b'{"commit_hash": ', "can't be read: "),
        (b"[" * 100_000, "can't be read: "),
        (b"9" * 10_000, "can't be read: "),
    ],
    ids=["empty", "bytes", "cut", "deep", "vast"],
)
def test_what_is_no_json_is_a_damaged_file(text: bytes, said: str) -> None:
    with pytest.raises(DamagedFile) as caught:
        read(text)
    assert said in caught.value.message
    assert caught.value.message.startswith("results.json ")


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (b'{"a": nan}', False), (b'{"a": 12%}', False), (b'{"a": 1,5}', False),
        (b'[{"a": -inf}]\n', False), (b'{"a": 1', True), (b'{"a": [1, 2]', True),
        (b'{"a": "x', True), (b'{"a": tru', True),
    ],
)  # fmt: skip
def test_only_a_file_that_ends_too_early_is_said_to_be_cut_off(text: bytes, cut: bool) -> None:
    with pytest.raises(DamagedFile) as refused:
        read(text)
    assert ("cut off" in refused.value.advice) is cut
    assert ("mend that place" in refused.value.advice) is not cut


@pytest.mark.parametrize("file", [[], 3, {}, {"a\n\x00": 2}], ids=str)
def test_json_that_is_no_result_is_refused(file: Any) -> None:
    with pytest.raises(UsageError) as caught:
        read(file)
    assert "asv, google-benchmark, nvbench, pytest-benchmark and vllm" in caught.value.message


@pytest.mark.parametrize(
    ("name", "key", "value", "said"),
    [
        ("asv-2.json", "results", [], "asv, but: Expected `object`, got `array` - at `$.results`"),
        ("google-benchmark-small.json", "benchmarks", {}, "google-benchmark, but: Expected"),
        ("pytest-benchmark-4.0.0.json", "datetime", 3, "pytest-benchmark, but: Expected"),
    ],
)
def test_a_file_of_another_layout_says_what_was_expected_and_found(
    name: str, key: str, value: Any, said: str
) -> None:
    with pytest.raises(DamagedFile) as caught:
        read(plain(name) | {key: value})
    assert said in caught.value.message


def test_a_run_without_a_time_is_read_and_says_so() -> None:
    file = plain("google-benchmark-small.json")
    del file["context"]["date"]
    assert only_run(read(file)).measured_at == ""


def test_a_folder_of_several_tools_is_read_and_bad_files_are_named() -> None:
    files = {f"old/{path.name}": path.read_bytes() for path in FILES}
    parts = read_folder(files | {"old/cut.json": b"{", "list.json": b"[]"})
    assert {run.source for part in parts for run in part.runs} == set(TOOLS)
    reasons = {one.what: one.why for part in parts for one in part.skipped}
    assert "can't be read" in reasons["old/cut.json"]
    assert "not a file of results" in reasons["list.json"]


def test_a_copy_of_a_file_in_the_same_folder_is_the_same_run() -> None:
    files = {name: content("google-benchmark-small.json") for name in ("a.json", "b/copy.json")}
    alone = only_run(read("google-benchmark-small.json"))
    assert [only_run(part) for part in read_folder(files)] == [alone, alone]


def test_a_large_folder_is_read_a_file_at_a_time() -> None:
    asked: list[str] = []

    def content_of(path: str) -> bytes:
        asked.append(path)
        return content(path)

    names = ["google-benchmark-small.json", "asv-2.json"]
    found = foreign_parts(names, content_of, "old")
    assert asked == []
    assert next(found).tool == "asv"
    assert asked == ["asv-2.json"]
    assert next(found).tool == "google-benchmark"
    assert next(found, None) is None


@pytest.mark.parametrize("files", [{}, {"a.json": b"[]"}])
def test_a_folder_with_nothing_in_it_is_an_error(files: dict[str, bytes]) -> None:
    with pytest.raises(UsageError, match="holds no file of results"):
        read_folder(files)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_stay_text_that_a_database_takes(name: str) -> None:
    file = plain("google-benchmark-small.json")
    file["context"]["host_name"] = name
    file["benchmarks"] = [
        {"name": f"{name}.a", name or "counter": 1.5, "real_time": 1, "time_unit": "ns"}
    ]
    foreign = read(file)
    json.dumps(to_plain(foreign), ensure_ascii=False).encode()
    run = only_run(foreign)
    for text in (run.runner, *(f"{one.case} {one.metric} {one.unit}" for one in run.points)):
        assert text.isprintable()


def test_two_long_names_stay_two() -> None:
    file = plain("google-benchmark-small.json")
    file["benchmarks"] = [
        {"name": "x" * 500 + end, "real_time": 1, "cpu_time": 1, "time_unit": "ns"} for end in "ab"
    ]
    cases = {case for case, _ in points(read(file))}
    assert len(cases) == 2
    assert all(len(case) == 200 for case in cases)


def test_two_names_that_read_alike_are_one_case_and_the_second_is_said() -> None:
    file = plain("google-benchmark-small.json")
    file["benchmarks"] = [
        {"name": name, "real_time": 1, "cpu_time": 1, "time_unit": "ns"}
        for name in ("a[1]", "a(1)")
    ]
    foreign = read(file)
    assert len(points(foreign)) == 2
    assert "an earlier result has the same name" in foreign.skipped[0].why


STRANGE = (
    *("null", "true", "-1", "0", "1e308", "-1e308", "Infinity", "NaN", "9" * 400),
    *('""', '"x"', r'"\ud800"', r'"\u0000"', '"2024-99-99"'),
    *("[]", "{}", "[[]]", "[null]", '[1, "a"]', '{"a": []}', '{"": {"": []}}'),
)
CHANGES = st.lists(st.tuples(st.integers(0), st.sampled_from(STRANGE)), min_size=1, max_size=3)


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Return every container of ``node`` with each of its keys; of a list, the first few."""
    if isinstance(node, dict):
        keys: list[Any] = list(node)
    else:
        keys = list(range(min(len(node), 4))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [at for key in keys for at in _places(node[key])]


@pytest.mark.parametrize(
    "name",
    [
        "asv-2.json",
        "google-benchmark-aggregates.json",
        "pytest-benchmark-4.0.0.json",
    ],
)
@settings(max_examples=100)
@given(
    changes=st.lists(st.tuples(st.integers(0), st.sampled_from(STRANGE)), min_size=1, max_size=3)
)
def test_whatever_stands_in_a_file_it_is_read_or_refused(
    name: str, changes: list[tuple[int, str]]
) -> None:
    file = plain(name)
    for number, value in changes:
        places = _places(file)
        if places:
            container, key = places[number % len(places)]
            container[key] = json.loads(value)
    try:
        foreign = read(json.dumps(file).encode())
    except PerfciError as error:
        str(error).encode()
        return
    json.dumps(to_plain(foreign), ensure_ascii=False).encode()  # finite, and can be written
    for run in foreign.runs:
        assert run.measured_at[:2] in {"", "19", "20"}
        assert len({(one.case, one.metric) for one in run.points}) == len(run.points)
