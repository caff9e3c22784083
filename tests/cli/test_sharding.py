"""One comparison in parts, as several machines measure it: planned, measured, and merged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import Done, Project, rows
from tests.builders.simulated import Simulated

FILE = "benchmarks/bench_many.py"
MANY = """\
import perfci
from lib import work

@perfci.benchmark
def working():
    return work

@perfci.benchmark(size=[1, 2])
def sized(size):
    return lambda: sum(range(300 * size))

@perfci.benchmark(skip="needs another machine")
def elsewhere():
    return int
"""
DROPPED = """\
import perfci

@perfci.benchmark
def dropped():
    return int
"""
BROKEN = "import perfci\nraise RuntimeError('no such library')\n"
MEASURED = {"working", "sized[size=1]", "sized[size=2]"}


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """``main`` and ``feature``: feature's ``work`` costs three times as much."""
    project = Project(tmp_path_factory.mktemp("sharding") / "project", Simulated())
    lib = "def work():\n    return sum(range({}))\n"
    others = {"benchmarks/bench_broken.py": BROKEN, "benchmarks/bench_dropped.py": DROPPED}
    project.commit("base", **{FILE: MANY, "lib.py": lib.format(1000), **others})
    project.git("checkout", "--quiet", "-b", "feature")
    (project.folder / "benchmarks/bench_dropped.py").unlink()
    project.commit("head", **{"lib.py": lib.format(3000)})
    return project


@pytest.fixture(scope="module")
def parts(slowed: Project) -> tuple[Path, Path]:
    """The reports of two shards that were measured one after the other."""
    paths = tuple(slowed.folder.parent / f"part-{number}.json" for number in (1, 2))
    for number, path in enumerate(paths, start=1):
        name = f"{number}/2"
        done = slowed.perfci("compare", "main", "feature", "--shard", name, "--json", str(path))
        assert path.exists(), done.without_traceback().text
    return paths


@pytest.fixture
def folder(slowed: Project) -> Iterator[Path]:
    """A folder for what a test merges."""
    path = slowed.folder.parent / "merged"
    path.mkdir()
    yield path
    shutil.rmtree(path)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def failed(report: dict[str, Any]) -> list[tuple[str, ...]]:
    return [tuple(one[name] for name in ("case", "side", "kind")) for one in report["failures"]]


def edited(path: Path, to: Path, **changes: Any) -> Path:
    to.write_text(json.dumps({**read(path), **changes}), encoding="utf-8")
    return to


def merge(project: Project, folder: Path, *files: Path, arguments: tuple[str, ...] = ()) -> Done:
    names = [str(file) for file in files]
    out = str(folder / "report.json")
    return project.perfci("merge", *names, "--json", out, *arguments).without_traceback()


def test_two_shards_merged_say_what_the_whole_says(
    slowed: Project, parts: tuple[Path, Path], folder: Path
) -> None:
    whole = slowed.report("compare", "main", "feature", code=1)
    done = merge(slowed, folder, *parts, arguments=("--expect", "2"))
    merged = read(folder / "report.json")
    assert (done.code, done.out) == (1, f"{folder / 'report.json'}\n")
    assert {row["case"] for row in merged["results"]} == {row["case"] for row in whole["results"]}
    assert {
        case: rows(merged, case)["latency_p50"]["status"] for case in ("working", "dropped")
    } == {
        "working": "regressed",
        "dropped": "removed",
    }
    assert merged["verdict"]["status"] == whole["verdict"]["status"] == "fail"
    assert failed(merged) == failed(whole) != []
    assert merged["skipped"] == whole["skipped"]
    assert merged["durations"].keys() == whole["durations"].keys() == MEASURED
    assert min(merged["durations"].values()) > 0.0
    assert (merged["shard"], whole["shard"]) == ("", "")


def test_a_case_is_in_one_shard_and_what_is_no_case_in_the_first(parts: tuple[Path, Path]) -> None:
    first, second = map(read, parts)
    assert (first["shard"], second["shard"]) == ("1/2", "2/2")
    cases = [{row["case"] for row in part["results"]} for part in (first, second)]
    assert cases[0] & cases[1] == set()
    assert cases[0] | cases[1] == {*MEASURED, "dropped", "benchmarks/bench_broken.py"}
    assert {"dropped", "benchmarks/bench_broken.py"} <= cases[0]
    assert [part["durations"].keys() & MEASURED for part in (first, second)] == [
        one & MEASURED for one in cases
    ]
    assert second["failures"] == []


def test_a_missing_shard_has_no_verdict(
    slowed: Project, parts: tuple[Path, Path], folder: Path
) -> None:
    quick = min(parts, key=lambda path: read(path)["verdict"]["status"] == "fail")
    done = merge(slowed, folder, quick)
    verdict = read(folder / "report.json")["verdict"]
    assert done.code == 3
    assert verdict["status"] in {"inconclusive", "error"}
    other = 3 - int(read(quick)["shard"][0])
    assert f"incomplete: shard {other} of 2 is missing" in verdict["reasons"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shard": "1/2"}, "both shard 1/2"),
        ({"perfci_version": "0.0.1"}, "perfci's version"),
        ({"shard": "2/3"}, "the number of shards"),
    ],
)
def test_parts_of_different_runs_are_not_merged(
    slowed: Project, parts: tuple[Path, Path], folder: Path, changes: dict[str, Any], said: str
) -> None:
    other = edited(parts[1], folder / "other.json", **changes)
    done = merge(slowed, folder, parts[0], other)
    assert done.code == 2
    assert said in done.err
    assert not (folder / "report.json").exists()


def test_each_environment_gets_a_file_of_its_own(
    slowed: Project, parts: tuple[Path, Path], folder: Path
) -> None:
    key = "linux-x86_64-other-1a2b3c4d"
    environment = {"key": key, "facts": {"cpu": "other"}}
    others = [edited(one, folder / one.name, environment=environment) for one in parts]
    done = merge(slowed, folder, *parts, *others)
    assert done.code == 1
    written = done.out.split()
    own = read(parts[0])["environment"]["key"]
    assert sorted(written) == sorted(str(folder / f"report.{one}.json") for one in (key, own))
    assert all(read(Path(path))["environment"]["key"] in path for path in written)


def test_a_shard_without_cases_passes(slowed: Project) -> None:
    report = slowed.report("compare", "main", "feature", "--shard", "9/9", code=0)
    assert (report["verdict"]["status"], report["results"], report["shard"]) == ("pass", [], "9/9")
    assert "Shard 9/9 has nothing to measure." in report["notes"]


def test_a_check_can_be_sharded(slowed: Project, folder: Path) -> None:
    slowed.git("checkout", "--quiet", "main")
    try:
        assert slowed.perfci("baseline", "update", "main").code in {0, 3}  # one file is broken
        paths = [folder / "check-1.json", folder / "check-2.json"]
        for number, path in enumerate(paths, start=1):
            slowed.perfci("check", "feature", "--shard", f"{number}/2", "--json", str(path))
        done = merge(slowed, folder, *paths)
    finally:
        slowed.git("checkout", "--quiet", "--force", "feature")
    report = read(folder / "report.json")
    assert done.code == 1, done.text
    assert report["command"] == "check"
    working = rows(report, "working")["latency_p50"]
    assert (working["status"], working["confirmed"]) == ("regressed", True)
    cases = {row["case"] for row in report["results"]}
    assert cases == {*MEASURED, "dropped", "benchmarks/bench_broken.py"}
