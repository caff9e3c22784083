"""A broken environment of perfci: a clear error with advice, its exit code, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.project import Done, Project, rows


def errs(done: Done, code: int, *texts: str) -> None:
    """Assert the exit code, no traceback, and each text in what was said."""
    assert done.code == code, done.text
    done.without_traceback()
    for text in texts:
        assert text in done.text, done.text


@pytest.fixture
def small(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    return project


def test_not_a_git_repository(project: Project, tmp_path: Path) -> None:
    bare = Project(tmp_path / "other")
    subprocess.run(["rm", "-rf", str(bare.folder / ".git")], check=True)
    errs(bare.perfci("compare", "main", "HEAD"), 2, "git repository")


def test_an_unknown_ref_is_named(small: Project) -> None:
    errs(small.perfci("compare", "mian", "HEAD"), 2, "mian")


def test_a_shallow_clone_without_the_base_says_how_to_fetch_it(
    small: Project, tmp_path: Path
) -> None:
    old = small.git("rev-parse", "HEAD").strip()
    small.counting(2000)
    small.commit("newer")
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth", "1", f"file://{small.folder}", str(clone)],
        check=True,
    )
    shallow = object.__new__(Project)
    shallow.folder, shallow.cache = clone, tmp_path / "clone-cache"
    errs(shallow.perfci("compare", old, "HEAD"), 2, "shallow", "fetch")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'pyenv: python3.13: command not found' >&2; exit 127", "pyenv: python3.13: command"),
        ("echo Python 3 12; echo 'no interpreter is set' >&2; exit 1", "no interpreter is set"),
        ("echo 'usage: tool FILE'", "usage: tool FILE"),
        ("exit 3", "is not a Python"),
    ],
)
def test_a_program_that_is_no_python_is_quoted(small: Project, script: str, told: str) -> None:
    program = small.write("python", f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    done = small.perfci("run", "--python", str(program))
    errs(done, 2, told, "--python", "print(sys.executable)")
    assert sys.executable not in done.text  # perfci's own Python lacks what a project needs


def test_no_benchmarks(project: Project) -> None:
    project.commit("nothing")
    errs(
        project.perfci("compare", "HEAD", "HEAD", "--allow-same-commit"),
        2,
        "no benchmarks",
        "perfci init",
    )


def test_an_unknown_key_is_named_with_the_known_ones(small: Project) -> None:
    small.write("pyproject.toml", "[tool.perfci]\nbudgte = '1m'\n")
    errs(small.perfci("list"), 2, "budgte", "budget")


def test_an_import_error_on_head_only_is_an_error_and_the_others_go_on(small: Project) -> None:
    small.write("benchmarks/bench_other.py", OTHER)
    small.write("other.py", "work = int\n")
    base = small.commit("with other")
    small.write("other.py", "raise RuntimeError('broken by this change')\n")
    small.commit("broken")
    report = small.report("compare", base, "HEAD", code=3)
    assert report["verdict"]["status"] == "error"
    assert rows(report, "other_work")["latency_p50"]["status"] == "failed"
    assert rows(report, "steady")["latency_p50"]["status"] not in {"failed", "new"}
    assert any("broken by this change" in failure["message"] for failure in report["failures"])


def test_an_import_error_on_base_only_makes_the_case_new(small: Project) -> None:
    base = small.git("rev-parse", "HEAD").strip()
    small.write("benchmarks/bench_other.py", OTHER)
    small.write("other.py", "work = int\n")
    small.commit("with other")
    report = small.report("compare", base, "HEAD")
    assert rows(report, "other_work")["latency_p50"]["status"] == "new"
    assert rows(report, "steady")["latency_p50"]["status"] not in {"failed", "new"}
    assert report["verdict"]["status"] != "error"


@pytest.mark.processes
def test_a_worker_never_sees_a_secret(small: Project) -> None:
    small.write(
        "benchmarks/bench_env.py",
        "import os, perfci\n"
        "assert 'AWS_SECRET_ACCESS_KEY' not in os.environ\n"
        "assert 'ACTIONS_RUNTIME_URL' not in os.environ\n"
        "@perfci.benchmark\ndef env():\n    return int\n",
    )
    small.commit("env")
    done = small.perfci("list", AWS_SECRET_ACCESS_KEY="x", ACTIONS_RUNTIME_URL="y")
    assert "failed" not in done.text
    assert "env" in done.out


def test_a_report_that_cannot_be_written_is_said_before_measuring(small: Project) -> None:
    done = small.perfci(
        "compare", "HEAD", "HEAD", "--allow-same-commit", "--json", "/proc/nowhere/report.json"
    )
    errs(done, 4, "/proc/nowhere")
    assert "rounds" not in done.err


OTHER = """\
import perfci
from other import work

@perfci.benchmark
def other_work():
    return work
"""
