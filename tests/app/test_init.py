"""What a first configuration says of the Python that measures."""

from __future__ import annotations

import sys
import tomllib

import pytest

from perfci.app.init import initialise
from perfci.app.init_github import GitHubOptions
from perfci.app.notices import silent
from perfci.checkout.repository import open_repository
from tests.builders.project import Project

OPTIONS = GitHubOptions(install=("pip install .",), report_install=("pip install perfci",))


@pytest.mark.parametrize(
    ("folder", "github", "python"),
    [
        (".venv", None, ".venv/bin/python"),
        ("venv", None, "venv/bin/python"),
        ("environment", None, None),
        (".venv", OPTIONS, None),  # the jobs that it writes have an environment of their own
    ],
)
def test_a_virtual_environment_in_the_folder_is_what_measures(
    project: Project, folder: str, github: GitHubOptions | None, python: str | None
) -> None:
    (project.folder / "pyproject.toml").unlink()
    (project.folder / folder / "bin").mkdir(parents=True)
    (project.folder / folder / "bin" / "python").symlink_to(sys.executable)
    project.commit("first")
    initialise(open_repository(project.folder), "benchmarks", github, silent)
    written = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written.get("python") == python


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
