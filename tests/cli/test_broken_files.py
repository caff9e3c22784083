"""A benchmark file that can't be imported: named alike on both sides, and never passed over."""

from __future__ import annotations

import pytest

from tests.builders.project import Project, rows

DIES = "import os\nos._exit(0)\n"
BROKEN = "syntax error(\n"
FILE = "benchmarks/bench_zz.py"
OTHER = "import perfci\n\n@perfci.benchmark\ndef zz():\n    return int\n"


@pytest.fixture
def steady(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    return project


def test_a_file_that_dies_on_import_is_called_the_same_on_both_sides(steady: Project) -> None:
    steady.commit("dies", **{FILE: DIES})
    report = steady.report("compare", "HEAD", "HEAD", "--same", "-k", "steady")
    named = {(failure["side"], failure["case"]) for failure in report["failures"]}
    assert named == {("base", FILE), ("head", FILE)}
    (row,) = rows(report, FILE).values()
    assert row["status"] == "failed"


@pytest.mark.parametrize("text", [DIES, BROKEN])
@pytest.mark.parametrize("before", [None, OTHER])
def test_a_file_that_head_broke_is_heads_error(
    steady: Project, text: str, before: str | None
) -> None:
    if before:
        steady.commit("sound", **{FILE: before})
    steady.write(FILE, text)
    report = steady.report("compare", "HEAD", "-k", "steady", code=3)
    assert {failure["side"] for failure in report["failures"]} == {"head"}
    assert report["verdict"]["status"] == "error"
    assert report["verdict"]["reasons"][0].startswith(f"{FILE}: head failed in import")


def test_a_file_that_was_broken_before_fails_on_both_sides(steady: Project) -> None:
    steady.commit("broken", **{FILE: BROKEN})
    report = steady.report("compare", "HEAD", "HEAD", "--same", "-k", "steady")
    assert {failure["side"] for failure in report["failures"]} == {"base", "head"}
    assert report["verdict"]["status"] == "error"
    assert any("fails on both sides" in reason for reason in report["verdict"]["reasons"])


def test_a_changed_file_that_only_base_cannot_import_makes_its_cases_new(steady: Project) -> None:
    steady.write("lib.py", "def work():\n    return 1\n\ndef fresh():\n    return 2\n")
    steady.write(FILE, OTHER.replace("import perfci", "import perfci\nfrom lib import fresh"))
    report = steady.report("compare", "HEAD", "-k", "zz")
    assert {row["case"]: row["status"] for row in report["results"]} == {"zz": "new"}


def test_listing_says_by_its_exit_code_that_a_file_failed(steady: Project) -> None:
    assert steady.perfci("list").code == 0
    steady.write(FILE, BROKEN)
    done = steady.perfci("list").without_traceback()
    assert done.code == 3
    assert "steady" in done.out
    assert FILE in done.err


@pytest.mark.parametrize(
    ("settings", "changed", "told"),
    [
        ('benchmarks = "benchmark"', {}, "head has no such folder\nDid you mean `benchmarks`?"),
        ('python = "no/python"', {}, "from the repository's root: make that environment"),
        ("", {"lib.py": "wrk = 1\n"}, "imported with head's code, as it can with base's; Import"),
        ("", {"benchmarks/bench_counting.py": BROKEN}, "Correct that line."),
    ],
)
def test_what_keeps_every_benchmark_out_is_named_with_its_cure(
    steady: Project, settings: str, changed: dict[str, str], told: str
) -> None:
    steady.commit("changed", **changed, **{"pyproject.toml": f"[tool.perfci]\n{settings}\n"})
    done = steady.perfci("compare", "HEAD~1", "HEAD").without_traceback()
    assert done.code != 0
    assert told in done.err


def test_what_was_not_checked_out_is_said_where_it_cost_every_benchmark(project: Project) -> None:
    """The advice was to install a package of that name, from an index, where a folder was empty."""
    for file in (project.folder / "benchmarks").glob("*.py"):
        file.unlink()
    project.write(".gitmodules", '[submodule "vendored"]\n\tpath = vendored\n\turl = ../none\n')
    project.write("benchmarks/bench_it.py", "import thing\n")
    project.git("add", "--all")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendored")
    project.git("commit", "--quiet", "--message", "vendored")
    (project.folder / "vendored").mkdir()  # as a clone has it
    done = project.perfci("list")
    assert done.code == 3, done.text
    said = done.err
    assert "submodules that are not checked out, nor are they on the sides: vendored. Run" in said
    assert said.index("submodules") < said.index("has no thing")
