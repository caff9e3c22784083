"""Other ways than an import statement to run a library's code, each a benchmark of one project.

The project has ``src/shapes``, which stands in the environment as a path file of the checkout.
"""

from __future__ import annotations

from pathlib import Path

from tests.builders.project import Project
from tests.matrix.cells import IGNORED
from tests.matrix.environment import Environment

MARKERS_FROM = {
    "as_a_module": 'printed(sys.executable, "-m", "shapes")',
    "console_script": 'printed(str(Path(sys.executable).with_name("shapes")))',
    "entry_point": 'entry_points(group="shapes")["markers"].load()()',
    "package_data": '[(importlib.resources.files("shapes") / "marker.txt").read_text()]',
    "get_data": '[pkgutil.get_data("shapes", "marker.txt").decode()]',
    "run_module": '[runpy.run_module("shapes.value")["MARKER"]]',
    "fork": 'in_pool("fork")',
    "forkserver": 'in_pool("forkserver")',
    "grandchild": 'printed("sh", "-c", f"{sys.executable} -m shapes; true")',
    "from_the_checkouts_folder": 'printed(sys.executable, "-c", CODE, cwd=SOURCE)',
    "path_of_this_file": "first_on_path(Path(__file__).parents[1] / 'src')",
    "path_of_the_checkout": "first_on_path(SOURCE)",
    "file_of_this_tree": "[runpy.run_path(HERE / 'src/shapes/value.py')['MARKER']]",
    "file_of_the_checkout": "[runpy.run_path(f'{SOURCE}/shapes/value.py')['MARKER']]",
    "text_of_the_checkout": "[executed(f'{SOURCE}/shapes/value.py')['MARKER']]",
    "behind_a_wrapper": 'printed("nice", sys.executable, "-c", CODE)',
    "only_on_head": "importlib.import_module('only_on_head').markers()",
}
"""What each benchmark's marker is taken from."""

_FILE = """\
import importlib.resources
import os
import pkgutil
import runpy
import subprocess
import sys
from importlib.metadata import entry_points
from multiprocessing import get_context
from pathlib import Path

import perfci

SOURCE = {source!r}
HERE = Path(__file__).parents[1]
CODE = "import shapes.__main__"
EXPRESSION = "__import__('shapes').markers()"


def printed(*command, **how):
    return subprocess.check_output(command, text=True, **how).split()


def in_pool(method):
    with get_context(method).Pool(1) as pool:
        return pool.apply(eval, (EXPRESSION,))


def first_on_path(folder):
    sys.path.insert(0, str(folder))
    return eval(EXPRESSION)


def executed(file):
    names = {{}}
    exec(Path(file).read_text(), names)
    return names


def told(markers):
    return perfci.metric("marker", lambda: float(list(markers)[0]), gate="info", exact=True)


@perfci.benchmark(metrics=["latency_p50"])
def late():
    calls, markers = [], []

    def work():
        calls.append(1)
        if len(calls) == 5:
            markers.extend(eval(EXPRESSION))

    return work, told(markers)
"""
_BENCHMARK = """

@perfci.benchmark(metrics=["latency_p50"])
def {name}():
    return int, told({expression})
"""
_PACKAGE = """\
from shapes.value import MARKER

def markers():
    return (MARKER,)
"""
_PROGRAM = """\
import shapes

print(*shapes.markers())

def done():
    return 0
"""
_PROJECT = """\
[project]
name = "shapes"
version = "1.0"

[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
packages = ["shapes"]
package-dir = {"" = "src"}
py-modules = ["only_on_head"]
[project.scripts]
shapes = "shapes.__main__:done"

[project.entry-points.shapes]
markers = "shapes:markers"

[tool.setuptools.package-data]
shapes = ["marker.txt"]
"""


def project_of_ways(folder: Path) -> tuple[Project, Environment]:
    """Return the project, whose checkout stands at head, and its environment."""
    project = Project(folder / "project")
    project.write(".gitignore", IGNORED)
    source = str(project.folder / "src")
    benchmarks = (
        _BENCHMARK.format(name=name, expression=expression)
        for name, expression in MARKERS_FROM.items()
    )
    project.write("benchmarks/bench_ways.py", _FILE.format(source=source) + "".join(benchmarks))
    project.write("pyproject.toml", _PROJECT)
    project.write("src/shapes/__init__.py", _PACKAGE)
    project.write("src/shapes/__main__.py", _PROGRAM)
    for marker in (1, 2):
        project.write("src/shapes/value.py", f"MARKER = {marker}\n")
        project.write("src/shapes/marker.txt", f"{marker}")
        if marker == 2:
            project.git("checkout", "--quiet", "-b", "feature")
            project.write("src/only_on_head.py", "def markers():\n    return (2,)\n")
        project.commit(f"marker {marker}")
    environment = Environment(project.folder / ".venv")
    settings = ("--config-settings", "editable_mode=compat")
    environment.install(*settings, "--editable", str(project.folder))
    return project, environment
