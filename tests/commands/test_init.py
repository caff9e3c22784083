"""A first configuration names the Python that measures."""

from __future__ import annotations

import sys
import tomllib

import pytest

from perfci.commands.init import initialise
from perfci.commands.workflows import CiOptions
from perfci.measure.checkout.git import open_repository
from perfci.outputs import silent
from tests.builders.project import Project

OPTIONS = CiOptions(install=("pip install . perfci",), report_install=("pip install perfci",))


@pytest.mark.parametrize(
    ("folder", "forges", "python"),
    [
        (".venv", (), ".venv/bin/python"),
        ("venv", (), "venv/bin/python"),
        ("environment", (), "environment/bin/python"),
        (".venv", ("github",), None),  # the jobs that it writes have an environment of their own
    ],
)
def test_a_virtual_environment_in_the_folder_is_what_measures(
    project: Project, folder: str, forges: tuple[str, ...], python: str | None
) -> None:
    (project.folder / "pyproject.toml").unlink()
    (project.folder / folder / "bin").mkdir(parents=True)
    (project.folder / folder / "bin" / "python").symlink_to(sys.executable)
    project.commit("first")
    initialise(
        open_repository(project.folder), "benchmarks", silent, forges=forges, options=OPTIONS
    )
    written = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written.get("python") == python


@pytest.mark.parametrize(
    ("folder", "name", "python_path"),
    [
        ("src", "toy-codec", None),
        (".", "Toy.Codec", None),
        ("python", "toy-codec", ["python"]),
        ("libs/codec/src", "another", ["libs/codec/src"]),
    ],
)
def test_the_first_benchmark_is_of_the_projects_own_package_and_runs(
    project: Project, folder: str, name: str, python_path: list[str] | None
) -> None:
    project.write("pyproject.toml", f'[project]\nname = "{name}"\nversion = "1"\n')
    if python_path:
        project.write(f"{folder.removesuffix('/src')}/pyproject.toml", "")
    source = "from torch import nn\nclass Coder(nn.Module): ...\n"
    project.write(f"{folder}/toy_codec/model.py", source)
    project.write(f"{folder}/toy_codec/__init__.py", "")
    project.commit("first")
    initialise(open_repository(project.folder), "benchmarks", silent)
    written = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written.get("python_path") == python_path
    first = (project.folder / "benchmarks" / "bench_first.py").read_text()
    assert "import toy_codec\n" in first
    assert "from toy_codec.model import Coder" in first
    done = project.perfci("list")
    assert (done.code, done.out.split()[0]) == (0, "importing")


@pytest.fixture
def monorepo(project: Project) -> Project:
    (project.folder / "pyproject.toml").unlink()
    for folder, name in (("libs/a/src", "alpha"), ("libs/b", "beta")):
        project.write(f"{folder.removesuffix('/src')}/pyproject.toml", "")
        project.write(f"{folder}/{name}/__init__.py", "")
    return project


def test_of_several_packages_none_is_guessed(monorepo: Project) -> None:
    for arguments in ((), ("--package", "gamma")):
        done = monorepo.perfci("init", *arguments)
        assert done.code == 2
        assert "there are alpha (in libs/a/src), beta (in libs/b)" in done.err
        assert "`perfci init --package alpha`" in done.err
        assert not (monorepo.folder / "benchmarks").exists()


@pytest.mark.parametrize("asked", ["alpha", "libs/a", "./libs/a/src/", "libs/a/src/alpha"])
def test_the_package_that_is_asked_for_is_measured_where_it_lies(
    monorepo: Project, asked: str
) -> None:
    assert monorepo.perfci("init", "--package", asked).code == 0
    written = tomllib.loads((monorepo.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written["python_path"] == ["libs/a/src"]
    assert "import alpha\n" in (monorepo.folder / "benchmarks" / "bench_first.py").read_text()
    assert monorepo.perfci("init").code == 0  # what is set up is asked no more


def test_a_package_is_not_made_up(project: Project) -> None:
    done = project.perfci("init", "--package", "alpha")
    assert (done.code, "no package is found here" in done.err) == (2, True)


def test_of_two_environments_the_one_with_torch_measures(project: Project) -> None:
    (project.folder / "pyproject.toml").unlink()
    for name in (".venv", "gpu"):
        (project.folder / name / "bin").mkdir(parents=True)
        (project.folder / name / "bin" / "python").symlink_to(sys.executable)
    project.write("gpu/lib/python3.11/site-packages/torch/__init__.py", "")
    initialise(open_repository(project.folder), "benchmarks", silent)
    written = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written["python"] == "gpu/bin/python"
    assert "/gpu/" in (project.folder / ".gitignore").read_text().splitlines()


def test_a_python_without_torch_is_named_with_the_key_that_changes_it(project: Project) -> None:
    project.write(
        "benchmarks/bench_model.py",
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n",
    )
    project.commit("first")
    done = project.perfci("list").without_traceback()
    assert "no-benchmark-imports" in done.err
    assert f"{sys.executable} measured, and has no torch" in " ".join(done.err.split())
    assert f"{sys.executable} -m pip install torch" in " ".join(done.err.split())
    assert "`python` in [tool.perfci], or --python" in " ".join(done.err.split())
