"""A benchmark file that can't be imported: named alike on both sides, and never passed over."""

from __future__ import annotations

import pytest

from tests.builders.project import Project

DIES = "import os\nos._exit(0)\n"
BROKEN = "syntax error(\n"
FILE = "benchmarks/bench_zz.py"
OTHER = "import perfci\n\n@perfci.benchmark\ndef zz():\n    return int\n"


@pytest.fixture
def steady(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    return project


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
    report = steady.report("compare", "HEAD", "HEAD", "--allow-same-commit", "-k", "steady")
    assert {failure["side"] for failure in report["failures"]} == {"base", "head"}
    assert report["verdict"]["status"] == "error"
    assert any("fails on both sides" in reason for reason in report["verdict"]["reasons"])


def test_a_changed_file_that_only_base_cannot_import_makes_its_cases_new(steady: Project) -> None:
    steady.write("lib.py", "def work():\n    return 1\n\ndef fresh():\n    return 2\n")
    steady.write(FILE, OTHER.replace("import perfci", "import perfci\nfrom lib import fresh"))
    report = steady.report("compare", "HEAD", "-k", "zz")
    assert {row["case"]: row["status"] for row in report["results"]} == {"zz": "new"}
