"""The wrong code: what a worker or a child of it runs that isn't its side's is an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import Project

QUICK = ("--rounds", "2", "--budget", "60s")
PACKAGE = "def work():\n    return {marker!r}\n"


def editable(project: Project, *folders: str) -> str:
    """Return a Python in which folders of the checkout are on ``sys.path``, as `pip install -e`."""
    folder = project.folder.parent / "venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(folder)],
        check=True,
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    lines = [str(project.folder / one) for one in folders]
    (packages / "project.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder / "bin" / "python")


def benchmark(body: str, top: str = "") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return (
        f"import os, subprocess, sys\nimport perfci\n{top}\n\n@perfci.benchmark\ndef case():\n"
        f"    def work():\n{lines}\n    return work\n"
    )


def both(project: Project, files: dict[str, str], changed: str) -> None:
    """Commit ``files`` on main, and on ``feature`` with another marker in ``changed``."""
    project.commit("base", **files)
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit("head", **{changed: files[changed].replace("base", "head")})


def test_an_import_in_the_function_names_file_side_and_line(project: Project) -> None:
    source = benchmark("import core\nreturn core.work()")
    files = {"benchmarks/bench_case.py": source, "libs/core/core/__init__.py": PACKAGE.format(marker="base")}
    both(project, files, "libs/core/core/__init__.py")
    python = editable(project, "libs/core")
    report = project.report("compare", "main", "feature", *QUICK, "--base-python", python, "--head-python", python)
    assert report["verdict"]["status"] == "error"
    (first, second) = report["failures"]
    assert {first["side"], second["side"]} == {"base", "head"}
    assert first["kind"] == "wrong_code"
    assert "libs/core/core/__init__.py" in first["message"]
    assert 'python_path = ["libs/core"]' in first["message"]
