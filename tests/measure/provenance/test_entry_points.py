"""Entry points that changed and are installed once: whoever asks for them runs one side's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfci.measure.provenance.counterparts import (
    distribution_at,
    entry_points_of,
    installed_entry_points,
)
from tests.builders.project import Project
from tests.builders.wheels import wheel
from tests.measure.provenance.installs import Session, benchmark, right, wrong
from tests.plugins import bare_environment

BENCH = "benchmarks/bench_case.py"
PAINT = "def red():\n    return 'base'\n\ndef blue():\n    return 'head'\n"
PYPROJECT = '[project]\nname = "Paint"\nversion = "1"\n[project.entry-points."paint.colours"]\n{}\n'
ASKS = "import importlib.metadata as m\n"
BY_GROUP = f"{ASKS}[ran(one.load()()) for one in m.entry_points(group='paint.colours')]"
OF_DISTRIBUTION = f"{ASKS}[ran(one.load()()) for one in m.distribution('paint').entry_points]"
OF_OTHERS = f"{ASKS}m.entry_points(group='torch.backends')\nimport paint\nran(paint.red())"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python into which pip installed base's plug-in."""
    folder = tmp_path_factory.mktemp("installed")
    python, _ = bare_environment(folder / "venv", site_packages=True)
    points = "[paint.colours]\ndefault = paint:red\n"
    wheel(folder / "wheels", "paint", "1", PAINT, entry_points=points)
    (file,) = (folder / "wheels").iterdir()
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index")
    subprocess.run([*pip, "--no-deps", str(file)], check=True)
    return python


@pytest.fixture
def painted(project: Project, python: str) -> tuple[Project, str]:
    """A project whose head declares another plug-in than base, and a Python that has base's."""
    packaging = "lib/pyproject.toml"
    settings = (project.folder / "pyproject.toml").read_text() + 'python_path = ["lib"]\n'
    first = PYPROJECT.format('default = "paint:red"')
    files = {"pyproject.toml": settings, "lib/paint.py": PAINT, packaging: first}
    project.commit("base", **files)
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit("head", **{packaging: first.replace("red", "blue")})
    return project, python


@pytest.mark.processes
@pytest.mark.parametrize("body", [BY_GROUP, OF_DISTRIBUTION], ids=["by group", "of distribution"])
def test_plug_ins_that_changed_and_are_installed_once_are_an_error(
    painted: tuple[Project, str], body: str
) -> None:
    project, python = painted
    project.commit("case", **{BENCH: benchmark(body)})
    report = Session(project, python).compare()
    said = wrong(report)
    assert 'environment = "own"' in said
    assert "paint-1.dist-info/entry_points.txt" in said
    assert {one["side"] for one in report["failures"]} == {"head"}


@pytest.mark.processes
def test_whoever_asks_for_another_group_reads_the_file_and_is_no_error(
    painted: tuple[Project, str],
) -> None:
    project, python = painted
    project.commit("case", **{BENCH: benchmark(OF_OTHERS)})
    session = Session(project, python)
    right(session.compare())
    assert session.markers() == {"base ran base", "head ran base"}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "pyproject.toml",
            (
                '[project]\nname = "A.B"\n[project.entry-points.g]\nn = "m : f"\n'
                '[project.scripts]\ns = "m:s"\n'
            ),
        ),
        (
            "pyproject.toml",
            (
                '[tool.poetry]\nname = "A.B"\n[tool.poetry.plugins.g]\nn = "m:f"\n'
                '[tool.poetry.scripts]\ns = {reference = "m:s", type = "console"}\n'
            ),
        ),
        (
            "setup.cfg",
            (
                "[metadata]\nname = A.B\n[options.entry_points]\ng =\n  n = m:f\n"
                "console_scripts =\n  s = m:s\n"
            ),
        ),
        (
            "setup.py",
            (
                "from setuptools import setup\nsetup(name='A.B', entry_points="
                "{'g': ['n = m:f'], 'console_scripts': 's=m:s'})\n"
            ),
        ),
        (
            "setup.py",
            (
                "from setuptools import setup\nsetup(name='A.B', entry_points="
                '"""[g]\nn = m:f\n[console_scripts]\ns = m:s\n""")\n'
            ),
        ),
    ],
    ids=["pyproject", "poetry", "setup.cfg", "setup.py", "setup.py as a text"],
)
def test_what_a_project_file_declares_is_what_is_installed_of_it(
    tmp_path: Path, file: str, text: str
) -> None:
    (tmp_path / file).write_text(text)
    declared = {"g": {"n": "m:f"}, "console_scripts": {"s": "m:s"}}
    assert entry_points_of(tmp_path) == {"a-b": declared}
    installed = tmp_path / "A_B-1.dist-info" / "entry_points.txt"
    installed.parent.mkdir()
    installed.write_text("[g]\nn = m:f\n\n[console_scripts]\ns = m:s\n")
    assert installed_entry_points(installed) == declared
    assert distribution_at(str(installed.parent)) == "a-b"


@pytest.mark.parametrize(
    "text", ["setup(name='x', entry_points=POINTS)", "setup(name='x', entry_points=", ""]
)
def test_what_a_setup_py_computes_is_not_known(tmp_path: Path, text: str) -> None:
    (tmp_path / "setup.py").write_text(text)
    assert all(points == {} for points in entry_points_of(tmp_path).values())
