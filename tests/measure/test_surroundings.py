"""What a benchmark depends on outside of its own file: helpers next to it, and variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.project import Project
from tests.builders.simulated import Simulated

BENCH = """\
{imports}
import perfci

@perfci.benchmark
def counting():
    {inside}
    return lambda: sum(range(500))
"""
ALONE = "import perfci\n\n@perfci.benchmark\ndef alone():\n    return lambda: sum(range(400))\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", Simulated())


def of_files(**files: str) -> dict[str, str]:
    return {f"benchmarks/{name}": text for name, text in files.items()}


@pytest.mark.parametrize(
    ("imports", "inside", "changed"),
    [
        ("from common import N", "", "common.py"),
        ("import first", "", "common.py"),  # which imports it
        ("", "import common", "common.py"),
        ("from tools.sizes import N", "", "tools/sizes.py"),
        ("from tools.sizes import N", "", "tools/__init__.py"),
        ("import importlib; importlib.import_module('com' + 'mon')", "", "common.py"),
    ],
)
def test_stored_numbers_of_a_benchmark_whose_helper_changed_are_not_comparable(
    project: Project, imports: str, inside: str, changed: str
) -> None:
    helpers = {"common.py": "N = 1\n", "first.py": "from common import N\n"}
    helpers |= {"tools/__init__.py": "", "tools/sizes.py": "N = 1\n"}
    bench = BENCH.format(imports=imports, inside=inside or "pass")
    project.commit("base", **of_files(**helpers, **{"bench_a.py": bench}))
    options = ("--rounds", "5", "-k", "counting")
    assert project.perfci("baseline", "update", "HEAD", *options).code == 0
    project.commit("library", **{"lib.py": "CHANGED = 1\n"})
    rows = project.report("check", "HEAD", *options)["results"]
    assert "not_comparable" not in {each["status"] for each in rows}
    project.commit("helper", **of_files(**{changed: "N = 2\n"}))
    statuses = {each["status"] for each in project.report("check", "HEAD", *options)["results"]}
    assert statuses == {"not_comparable"}


@pytest.mark.parametrize("folder", ["", "sub/"])
def test_a_helper_of_another_benchmark_changes_nothing(project: Project, folder: str) -> None:
    bench = BENCH.format(imports="from common import N", inside="pass")
    files = {f"{folder}bench_a.py": bench, f"{folder}common.py": "N = 1\n", "bench_b.py": ALONE}
    project.commit("base", **of_files(**files))
    assert project.perfci("baseline", "update", "HEAD", "--rounds", "5").code == 0
    project.commit("helper", **of_files(**{f"{folder}common.py": "N = 2\n"}))
    report = project.report("check", "HEAD", "--rounds", "5")
    statuses = {each["case"]: each["status"] for each in report["results"]}
    assert statuses["counting"] == "not_comparable"
    assert statuses["alone"] != "not_comparable"


READS = (
    'os.environ["BENCH_N"]',
    'os.environ.get("BENCH_N", "3")',
    'os.getenv("BENCH_N")',
    'environ["BENCH_N"]',
    'environ.get("BENCH_N")',
    'getenv("BENCH_N")',
    '"BENCH_N" in os.environ',
    '"BENCH_N" not in environ',
    "os.environ[ 'BENCH_N' ]",
    'os.environ.get(\n        "BENCH_N", "3")',
    'os.environ["BENCH_N"] == "3"',
    'dict(os.environ).get("BENCH_N")',
    'os.environ.get(key="BENCH_N")',
    '[environ.get(name) for name in ("BENCH_N",)]',
)
TOP = """\
import os
from os import environ, getenv
"""


def note_of(project: Project, **environment: str) -> list[str]:
    report = project.folder.parent / "report.json"
    done = project.perfci("run", "HEAD", "--rounds", "2", "--json", str(report), **environment)
    assert done.code == 0, done.text
    return [line for line in done.text.splitlines() if "not passed to workers" in line]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("place", ["benchmark", "library"])
def test_a_variable_that_is_set_and_read_but_not_passed_is_named(
    project: Project, read: str, place: str
) -> None:
    reader = f"{TOP}def use():\n    return {read}\n"
    top = reader if place == "benchmark" else "import lib"
    files = of_files(**{"bench_a.py": BENCH.format(imports=top, inside="pass")})
    project.commit("one", **files, **{"lib.py": reader})
    assert len(note_of(project, BENCH_N="300")) == 1
    assert note_of(project) == []
    settings = (project.folder / "pyproject.toml").read_text()
    project.commit("two", **{"pyproject.toml": f'{settings}pass_env = ["BENCH_N"]\n'})
    assert note_of(project, BENCH_N="300") == []


@pytest.mark.parametrize(
    "line", ['os.environ["BENCH_N"] = "1"', 'print("BENCH_N")', 'os.environ["API_TOKEN"]', "pass"]
)
def test_what_is_not_read_or_is_a_secret_is_not_named(project: Project, line: str) -> None:
    top = f"import os\ndef use():\n    {line}\n"
    files = of_files(**{"bench_a.py": BENCH.format(imports=top, inside="pass")})
    project.commit("one", **files)
    assert note_of(project, BENCH_N="300", API_TOKEN="secret") == []
