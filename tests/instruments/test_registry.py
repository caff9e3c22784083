"""Instruments of other distributions: they say why like perfci's own, and are named when broken."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perfci.instruments import Instrument, instruments, words
from perfci.model.why import Difference, Hint
from tests.builders.project import Project
from tests.plugins import Environment, install

pytestmark = pytest.mark.processes

GROUP = "perfci.instruments"
CALLS = """
import sys

from perfci.model.why import Difference, Hint

WHEN = "work"
RUNS = 2
WORDS = {
    "calls": "`{name}` is called {before} → {after} times",
    "many": lambda name: f"`{name}`\\n is called often",
}


def record(scene):
    counts = {}

    def called(frame, event, _argument):
        if event == "call" and (file := scene.place(frame.f_code.co_filename)) == "lib.py":
            key = (frame.f_code.co_name, file, frame.f_code.co_firstlineno)
            counts[key] = counts.get(key, 0) + 1

    sys.setprofile(called)
    try:
        scene.once()
    finally:
        sys.setprofile(None)
    return {"calls": [[*key, count] for key, count in counts.items()]}


def differences(base, head):
    assert len(base) == len(head) == 2
    before = {name: count for name, _, _, count in base[0]["calls"]}
    for name, file, line, count in head[0]["calls"]:
        if count != before.get(name, 0):
            said = {"name": name, "before": before.get(name, 0), "after": count}
            yield Difference("calls", "calls", said, 1.0, metric="latency", file=file, line=line)


def hints(head):
    for name, file, line, count in head[0]["calls"]:
        if count > 3:
            yield Hint("calls", "many", {"name": name}, file, line)
"""
BENCHMARK = """
import perfci
from lib import work

@perfci.benchmark
def case():
    return work
"""
LIB = """
def part():
    return sum(range(2000))

def work():
    for _ in range({times}):
        part()
"""
SAID = "`part` is called 2 → 40 times"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder beside perfci's own Python that has the instrument."""
    return str(install(tmp_path_factory.mktemp("site"), GROUP, "calls", CALLS))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A Python that measures, with nothing installed."""
    return Environment(tmp_path_factory.mktemp("environment") / "venv")


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("slower") / "project")
    project.write("benchmarks/bench_one.py", BENCHMARK)
    project.commit("base", **{"lib.py": LIB.format(times=2)})
    project.commit("head", **{"lib.py": LIB.format(times=40)})
    return project


def explained(project: Project, python: str, *more: str, **environment: str) -> list[str]:
    asked = ("explain", "HEAD~1", "HEAD", "-k", "case", "--within", "5m", "--python", python)
    done = project.perfci(*asked, *more, **environment).without_traceback()
    assert done.code == 0, done.text
    return done.out.splitlines()


def test_what_only_perfcis_own_python_has_is_untold_and_says_why(
    slower: Project, environment: Environment, site: str
) -> None:
    lines = explained(slower, environment.python, PYTHONPATH=site)
    why = "on base: it is not installed in the Python that measures"
    assert f"  unavailable from someones_calls: {why}" in lines
    assert not any(SAID in line for line in lines)


def test_an_instrument_of_another_distribution_says_why_and_is_read_without_it(
    slower: Project, tmp_path: Path, site: str
) -> None:
    measuring = Environment(tmp_path / "venv")
    measuring.install(GROUP, "calls", CALLS)
    sides = ("HEAD~1", "HEAD", "--rounds", "5", "--why", "--json", "report.json")
    asked = ("compare", *sides, "--python", measuring.python)
    done = slower.perfci(*asked, PYTHONPATH=site).without_traceback()
    (why,) = json.loads((slower.folder / "report.json").read_text())["why"]
    (one,) = (one for one in why["differences"] if one["instrument"] == "someones_calls")
    assert (one["text"], one["file"], one["hunk"]) == (SAID, "lib.py", False), done.text
    # a busy machine may add a hint of perfci's own, such as one on warm-up
    (hint,) = (hint["text"] for hint in why["hints"] if hint["instrument"] == "someones_calls")
    assert hint == "`part` is called often"
    read = slower.perfci("report", "report.json", "--format", "markdown").without_traceback()
    assert "is called 2 → 40 times" in read.out, read.text
    slower.write("without.toml", "hints = false\n")
    lines = explained(slower, measuring.python, "--config", "without.toml", PYTHONPATH=site)
    assert any(SAID in line for line in lines)
    assert not any("hint" in line for line in lines)


OTHERS = replace(
    instruments()["memory"], name="someones", words={"a": "b {n}", "c": "{n}" * 999}, added=True
)


def test_words_of_others_are_cut_and_are_under_their_own_name() -> None:
    told = OTHERS.as_reported(Difference("memory", "c", {"n": "x"}))
    assert (told.instrument, words(told)) == ("someones", "x" * 500)
    own: Instrument = instruments()["memory"]
    assert own.as_reported(Hint("memory", "x")) == Hint("memory", "x")
