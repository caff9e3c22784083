"""Projects and environments in states that users have them in: none measures the wrong code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.matrix.cells import CELLS, Built, Finding
from tests.matrix.outcome import Outcome, compare
from tests.matrix.places import PLACES, Place

pytestmark = [pytest.mark.processes, pytest.mark.slow]

PIP = "{python} -m pip install --quiet --no-index --no-deps --no-build-isolation ."


def built(cell: str, folder: Path) -> Built:
    return Built(next(one for one in CELLS if str(one) == cell), folder)


def assert_own_code(one: Built, findings: dict[Place, Finding]) -> None:
    for place, finding in findings.items():
        assert finding.last.markers == one.cell.expected, (place.name, finding)


def point_path_files(one: Built, folder: Path) -> None:
    """Let the environment's path files name ``folder`` where they name the checkout."""
    for file in one.environment.packages.glob("*.pth"):
        text = file.read_text().replace(str(one.project.folder), str(folder))
        file.write_text(text)


@pytest.mark.parametrize(
    "cell", ["monorepo, setuptools, compat, pure", "src, a path file, compiled beside"]
)
def test_another_clone_is_installed(cell: str, tmp_path: Path) -> None:
    one = built(cell, tmp_path)
    clone = tmp_path / "another-clone"
    shutil.copytree(one.project.folder, clone, ignore=shutil.ignore_patterns(".venv"))
    point_path_files(one, clone)
    assert_own_code(one, one.findings())


def test_the_checkout_is_reached_by_a_link(tmp_path: Path) -> None:
    one = built("src, a path file, compiled beside", tmp_path)
    link = tmp_path / "link"
    link.symlink_to(one.project.folder)
    point_path_files(one, link)
    one.project.folder = link
    assert_own_code(one, one.findings())


def test_the_cache_lies_in_the_checkout(tmp_path: Path) -> None:
    one = built("src, setuptools, pure", tmp_path)
    one.project.cache = one.project.folder / "build" / "cache"
    assert_own_code(one, one.findings())


def test_the_environment_imports_the_library_before_anything_else(tmp_path: Path) -> None:
    one = built("src, setuptools, compat, pure", tmp_path)
    (one.environment.packages / "zz_early.pth").write_text("import shapes.value\n")
    findings = one.findings()
    for place, finding in findings.items():
        assert finding.first.markers in {None, one.cell.expected}, (place.name, finding)
        assert finding.first.markers or "src/shapes/" in finding.first.refusal


def test_the_build_installs_into_the_one_environment(tmp_path: Path) -> None:
    """The last build wins there, and on a second run nothing is built."""
    one = built("src, a copy, compiled beside", tmp_path)
    for _ in range(2):
        for case, outcome in slugs(one, f'build = ["{PIP}"]').items():
            assert outcome.markers in {None, one.cell.expected}, (case, outcome)
            assert outcome.markers or outcome.refusal, case


def test_a_package_that_only_head_has_is_installed_as_a_copy(tmp_path: Path) -> None:
    one = built("src, a copy, pure", tmp_path)
    project = one.project
    for path in project.folder.glob("benchmarks/bench_*.py"):
        path.write_text(path.read_text().replace("shapes", "newer"))
    project.commit("newer", **{"src/newer/__init__.py": "def markers():\n    return (2,)\n"})
    shutil.copytree(project.folder / "src" / "newer", one.environment.packages / "newer")
    (record,) = one.environment.packages.glob("shapes-*.dist-info/RECORD")
    with record.open("a") as file:
        file.write("newer/__init__.py,,\n")
    for case, outcome in slugs(one).items():
        assert outcome.markers is None, (case, outcome)


def test_a_dependency_lies_in_the_same_checkout(tmp_path: Path) -> None:
    """It is vendored, installed from there, and changes with the commits."""
    one = built("src, a path file, pure", tmp_path)
    one.setting = 'python_path = [".", "src", "third_party/paint"]'
    project = one.project
    dependency = "third_party/paint/paint/__init__.py"
    library = "import paint\n\ndef markers():\n    return (paint.MARKER,)\n"
    project.git("checkout", "--quiet", "main")
    project.commit("1", **{dependency: "MARKER = 1\n", "src/shapes/__init__.py": library})
    project.git("checkout", "--quiet", "-B", "feature")
    project.commit("2", **{dependency: "MARKER = 2\n"})
    with (one.environment.packages / "easy-install.pth").open("a") as file:
        file.write(f"{project.folder}/third_party/paint\n")
    assert_own_code(one, one.findings())


def test_a_namespace_that_extends_its_own_path(tmp_path: Path) -> None:
    """As packages did before namespaces: each part has the same ``__init__.py``."""
    one = built("namespace, setuptools, compat, pure", tmp_path)
    project = one.project
    extended = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
    library = "import acme.other\nfrom acme.shapes.value import MARKER\n"
    library += "\ndef markers():\n    return (MARKER,)\n"
    files = {"src/acme/__init__.py": extended, "src/acme/shapes/__init__.py": library}
    project.git("checkout", "--quiet", "main")
    project.commit("1", **files)
    project.git("checkout", "--quiet", "-B", "feature")
    project.commit("2", **files, **{"src/acme/shapes/value.py": "MARKER = 2\n"})
    (one.environment.packages / "acme" / "__init__.py").write_text(extended)
    assert_own_code(one, one.findings())


def slugs(one: Built, setting: str = "") -> dict[str, Outcome]:
    cases = [place.slug for place in PLACES]
    return compare(one.project, one.environment, cases, setting=setting)


def test_an_extension_is_installed_into_an_environment_of_each_sides_own(tmp_path: Path) -> None:
    one = built("src, nothing installed, compiled", tmp_path)
    setting = f'build = ["{PIP}"]\nenvironment = "own"\npython_path = []'
    for case, outcome in slugs(one, setting).items():
        assert outcome.markers == one.cell.expected, (case, outcome)
