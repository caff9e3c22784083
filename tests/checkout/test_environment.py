"""A build that installs: refused in the one environment, each side's own in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfci.errors import UsageError
from perfci.measure.checkout.build import BuildRecipe, python_in
from tests.builders.installed import Session, benchmark, right, venv
from tests.builders.project import Project
from tests.builders.repository import opened, worktrees_of
from tests.builders.wheels import wheel

PIP = "{python} -m pip install --quiet --no-index --disable-pip-version-check"
SETUP = (
    "from setuptools import setup\n"
    "setup(name='paint', version='1', packages=['paint'],\n"
    "      entry_points={'console_scripts': ['tool = paint:base']})\n"
)
PAINT = "NAME = 'base'\n\ndef base():\n    print('base')\n\ndef head():\n    print('head')\n"


def wheels(folder: Path) -> Path:
    for version in ("1", "2"):
        wheel(folder, "dependency", version, f"VERSION = {version}\n")
    return folder


def test_a_build_that_installs_into_the_environment_of_both_sides_is_refused(
    project: Project, tmp_path: Path
) -> None:
    links = wheels(tmp_path / "wheels")
    project.commit("one", value="one")
    python, _ = venv(project)
    build = [f"{PIP} --find-links {links} dependency==1"]
    side = worktrees_of(project).side(
        opened(project).resolve("HEAD"),
        BuildRecipe(build=build, python=python, environment=os.environ),
    )
    with pytest.raises(UsageError, match="dependency-1") as refused, side:
        pass
    assert refused.value.slug == "build-changed-environment"
    assert 'environment = "own"' in refused.value.advice
    # what is there already changes nothing
    with worktrees_of(project).side(
        opened(project).resolve("HEAD"),
        BuildRecipe(build=build, python=python, environment=os.environ),
    ):
        pass


def test_each_side_has_the_requirements_of_its_own_commit(project: Project, tmp_path: Path) -> None:
    links = wheels(tmp_path / "wheels")
    python, packages = venv(project)
    (packages / "beneath.py").write_text("VERSION = 'beneath'\n")
    project.commit("base", **{"requirements.txt": "dependency==1\n"})
    project.commit("head", **{"requirements.txt": "dependency==2\n"})
    build = [f"{PIP} --find-links {links} -r requirements.txt"]
    code = "import beneath, dependency, perfci; print(dependency.VERSION, beneath.VERSION)"
    for _ in range(2):  # made, then kept
        for rev, expected in (("HEAD~1", "1 beneath"), ("HEAD", "2 beneath")):
            with worktrees_of(project).side(
                opened(project).resolve(rev),
                BuildRecipe(
                    build=build, python=python, environment=os.environ, own_environment=True
                ),
            ) as tree:
                command = [python_in(tree), "-c", code]
                assert subprocess.check_output(command, text=True).strip() == expected
    assert not [*packages.glob("dependency*")]


@pytest.mark.processes
@pytest.mark.slow
def test_vendored_packages_console_scripts_and_requirements_are_each_sides_own(
    project: Project, tmp_path: Path
) -> None:
    links = wheels(tmp_path / "wheels")
    configuration = (project.folder / "pyproject.toml").read_text()
    install = f"{PIP} --no-deps --no-build-isolation"
    build = [f"{PIP} --find-links {links} -r requirements.txt", f"{install} ./third_party/paint"]
    work = (
        "import paint, dependency\nran(f'{paint.NAME} {dependency.VERSION}')\n"
        "ran(subprocess.run(['tool'], text=True, capture_output=True, check=True).stdout.strip())"
    )
    files = {
        "benchmarks/bench_case.py": benchmark(work),
        "pyproject.toml": configuration.replace(
            "[tool.perfci]",
            f'[tool.perfci]\nenvironment = "own"\nbuild = {build}\npass_env = ["MARKERS"]',
        ),
        "requirements.txt": "dependency==1\n",
        "third_party/paint/setup.py": SETUP,
        "third_party/paint/paint/__init__.py": PAINT,
    }
    project.commit("base", **files)
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit(
        "head",
        **{
            "requirements.txt": "dependency==2\n",
            "third_party/paint/setup.py": SETUP.replace("paint:base", "paint:head"),
            "third_party/paint/paint/__init__.py": PAINT.replace("NAME = 'base'", "NAME = 'head'"),
        },
    )
    session = Session(project, sys.executable)
    report = session.compare()
    right(report)
    assert session.markers() == {
        *("base ran base", "base ran base 1"),
        *("head ran head", "head ran head 2"),
    }
    assert report["base_environment"] is None
    assert report["base"]["python"] == report["head"]["python"] == sys.executable
