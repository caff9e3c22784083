"""A first configuration names the Python that measures."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from perfci.commands.init import first_benchmark, initialise
from perfci.commands.workflows import CiOptions
from perfci.measure.checkout.git import open_repository
from perfci.outputs import silent
from tests.builders.project import Project

OPTIONS = CiOptions(install=("pip install .",), action=f"o/perfci@{40 * 'a'}")


@pytest.mark.parametrize(
    ("folder", "workflows", "python"),
    [
        (".venv", None, ".venv/bin/python"),
        ("venv", None, "venv/bin/python"),
        (".venv", OPTIONS, None),  # the jobs that it writes have an environment of their own
    ],
)
def test_a_virtual_environment_in_the_folder_is_what_measures(
    project: Project, folder: str, workflows: CiOptions | None, python: str | None
) -> None:
    (project.folder / "pyproject.toml").unlink()
    (project.folder / folder / "bin").mkdir(parents=True)
    (project.folder / folder / "bin" / "python").symlink_to(sys.executable)
    project.commit("first")
    initialise(open_repository(project.folder), "benchmarks", silent, workflows=workflows)
    written = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written.get("python") == python


@pytest.mark.parametrize(
    ("folder", "package", "python_path"),
    [
        ("src", "", None),
        (".", "", None),
        ("libs/codec/src", "libs/codec/src/toy_codec", ["libs/codec/src"]),
    ],
)
def test_the_first_benchmark_is_of_the_projects_own_package_and_runs(
    project: Project, folder: str, package: str, python_path: list[str] | None
) -> None:
    project.write("pyproject.toml", '[project]\nname = "toy-codec"\nversion = "1"\n')
    project.write(f"{folder}/toy_codec/__init__.py", "")
    project.write("src/another/__init__.py", "")
    project.commit("first")
    initialise(open_repository(project.folder), "benchmarks", silent, package)
    written = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written.get("python_path") == python_path
    first = (project.folder / "benchmarks" / "bench_first.py").read_text()
    assert "import toy_codec\n" in first
    done = project.perfci("list")
    assert (done.code, done.out.split()[0]) == (0, "importing")


def test_the_first_benchmark_names_the_models_of_the_package(tmp_path: Path) -> None:
    package = tmp_path / "toy"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "other.py").write_text("class Encoder: ...\ndef broken(:\n")
    (package / "encoder.py").write_text(
        "from torch import nn\nclass Encoder(nn.Module): ...\nclass _Own(nn.Module): ...\n"
    )
    text = first_benchmark(package)
    assert "import toy\n" in text
    assert "#   toy.encoder.Encoder\n" in text
    assert "_Own" not in text
