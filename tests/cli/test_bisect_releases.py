"""``perfci bisect --package``: real pip, real environments and processes, wheels made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.builders.project import Project
from tests.builders.wheels import wheel
from tests.schemas import schemas

BENCHMARK = """\
import perfci
import quarry

@perfci.benchmark(metrics=["latency_p50"])
def counting():
    return quarry.work
"""
WORK = "VERSION = {!r}\ndef work():\n    return sum(range({}))\n"

pytestmark = pytest.mark.processes


@pytest.fixture
def index(project: Project) -> dict[str, str]:
    """Five releases of a package, one of which can't be installed, and what tells pip of them."""
    project.write("benchmarks/bench_counting.py", BENCHMARK)
    project.commit("the project")
    folder = project.folder.parent / "index"
    loops = {"1.0.0": 3000, "1.2.0": 3000, "1.3.0": 3000, "1.10.0": 6000}
    for version, count in {**loops, "2.0": 6000}.items():
        needs = "nowhere-to-be-found>=3" if version == "1.3.0" else ""
        wheel(folder, "quarry", version, WORK.format(version, count), needs)
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": "/dev/null"}


def bisected(project: Project, index: dict[str, str], *arguments: str) -> dict[str, Any]:
    path = project.folder.parent / "bisection.json"
    done = project.perfci("bisect", *arguments, "--json", str(path), **index).without_traceback()
    assert done.code == 0, done.text
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schemas()["bisection.schema.json"]).validate(found)
    return {**found, "out": done.out}


def environments(project: Project) -> dict[str, Path]:
    folder = project.cache.with_name(f"{project.cache.name}-releases")
    marks = folder.glob("*/installed")
    return {one.read_text(encoding="utf-8"): one.parent for one in marks}


def test_the_slower_release_of_a_dependency_is_found_and_its_environments_are_kept(
    project: Project, index: dict[str, str]
) -> None:
    asked = ("--package", "quarry", "1.0..1.10.0", "--metric", "latency_p50")
    found = bisected(project, index, *asked)
    (culprit,) = found["culprits"]
    assert [one["sha"] for one in culprit["commits"]] == ["1.3.0", "1.10.0"]
    assert (found["package"], found["commits"]) == ("quarry", 3)
    assert 1.5 < culprit["ratio"] < 2.5
    (skipped,) = found["skipped"]
    assert skipped["commit"]["sha"] == "1.3.0"
    assert "nowhere-to-be-found" in skipped["why"]
    replay = "bisect --package quarry 1.2.0..1.10.0 -k counting --metric latency_p50 --restart"
    assert culprit["replay"] == f"perfci {replay}"
    assert "1.10.0 quarry 1.10.0" in found["out"]
    made = environments(project)
    assert {"1.0.0", "1.2.0", "1.10.0"} <= made.keys()
    times = {name: (place / "pyvenv.cfg").stat().st_mtime_ns for name, place in made.items()}
    again = bisected(project, index, *replay.split()[1:])
    assert [one["sha"] for one in again["culprits"][0]["commits"]] == ["1.3.0", "1.10.0"]
    kept = environments(project)
    assert {name: (kept[name] / "pyvenv.cfg").stat().st_mtime_ns for name in times} == times


def test_an_end_that_was_never_released_is_refused_with_those_that_were(
    project: Project, index: dict[str, str]
) -> None:
    done = project.perfci("bisect", "--package", "quarry", "1.0..3", **index)
    assert (done.code, "[no-release]" in done.err) == (2, True), done.text
    assert "2.0, 1.10.0, 1.3.0" in done.err
    done = project.perfci("bisect", "--package", "quarry", "2.0..1.0", **index)
    assert (done.code, "[empty-range]" in done.err) == (2, True), done.text
    done = project.perfci("bisect", "--package", "quarry", "4be81f09c2d7", **index)
    assert (done.code, "[bad-range]" in done.err) == (2, True), done.text


def test_a_package_that_no_index_has_is_named_with_where_pip_looks(
    project: Project, index: dict[str, str]
) -> None:
    done = project.perfci("bisect", "--package", "nothing-of-ours", "1..2", **index)
    assert (done.code, "[release-not-installed]" in done.err) == (3, True), done.text
    assert "PIP_INDEX_URL" in done.err
