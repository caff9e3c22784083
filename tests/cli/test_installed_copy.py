"""A commit's own package that is imported from where it is installed: the wrong code, measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.project import Project

pytestmark = [pytest.mark.processes, pytest.mark.slow]

BENCHMARK = """\
import perfci
import tinylib

@perfci.benchmark
def work():
    return tinylib.work
"""
LIBRARY = "def work():\n    return sum(range({loops}))\n"


@pytest.fixture
def odd(project: Project) -> Project:
    """A library in ``python/tinylib``, which is neither the root nor ``src``; head is slower."""
    project.write("benchmarks/bench_work.py", BENCHMARK)
    project.commit("base", **{"python/tinylib/__init__.py": LIBRARY.format(loops=1000)})
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit("head", **{"python/tinylib/__init__.py": LIBRARY.format(loops=9000)})
    return project


def with_installed(folder: Path) -> str:
    """Return a Python in which a copy of the library is installed."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(folder)],
        check=True,
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "tinylib").mkdir()
    (packages / "tinylib" / "__init__.py").write_text(LIBRARY.format(loops=1000))
    return str(folder / "bin" / "python")


def test_an_installed_copy_is_refused_with_what_to_set(odd: Project, tmp_path: Path) -> None:
    python = with_installed(tmp_path / "one")
    pythons = ("--base-python", python, "--head-python", python)
    done = odd.perfci("compare", "main", "feature", *pythons)
    assert done.code == 2, done.text
    assert "`tinylib` is imported from" in done.err
    assert 'Add "python" to `python_path`' in done.err
    alone = odd.perfci("run", "feature", "--python", python)
    assert alone.code == 2, alone.text


def test_with_its_folder_named_the_commits_own_code_is_measured(
    odd: Project, tmp_path: Path
) -> None:
    with (odd.folder / "pyproject.toml").open("a") as file:
        file.write('python_path = ["python"]\n')
    python = with_installed(tmp_path / "one")
    pythons = ("--base-python", python, "--head-python", python)
    assert odd.report("compare", "main", "feature", *pythons, code=1)["verdict"]["status"] == "fail"


@pytest.mark.usefixtures("single_round")
def test_two_pythons_with_copies_of_their_own_are_compared_and_said(
    odd: Project, tmp_path: Path
) -> None:
    base, head = (with_installed(tmp_path / name) for name in ("one", "two"))
    report = odd.report("compare", "main", "feature", "--base-python", base, "--head-python", head)
    assert any("`tinylib` is the installed one" in note for note in report["notes"])
    assert report["installed"] == []  # a copy each


@pytest.mark.usefixtures("single_round")
def test_a_copy_that_is_meant_is_measured_and_said(odd: Project, tmp_path: Path) -> None:
    with (odd.folder / "pyproject.toml").open("a") as file:
        file.write('installed = ["tinylib"]\n')
    report = odd.report("run", "feature", "--python", with_installed(tmp_path / "one"))
    assert any("`tinylib` is the installed one" in note for note in report["notes"])
    assert report["installed"] == ["tinylib"]


def test_a_package_that_is_not_found_is_named_with_its_folder(odd: Project) -> None:
    done = odd.perfci("compare", "main", "feature")
    assert done.code == 3, done.text
    assert 'Add "python" to `python_path` in [tool.perfci].' in done.err
