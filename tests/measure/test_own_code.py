"""The wrong code: what a worker or a child of it runs that isn't its side's is an error."""

from __future__ import annotations

import sysconfig
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.builders.installed import (
    PACKAGE,
    Session,
    benchmark,
    compiled,
    editable,
    import_hook,
    right,
    two_sides,
    venv,
    wrong,
)
from tests.builders.project import Project

pytestmark = pytest.mark.processes

BENCH = "benchmarks/bench_case.py"
INIT = "core/__init__.py"
OWN = {"base ran base", "head ran head"}
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
CHILD = 'print(__import__("core").work())'
SETUP_PY = (
    "from setuptools import Extension, setup\n"
    'setup(name="core", ext_modules=[Extension("core._C", ["core/c.c"])])\n'
)
LATER = """\
work.calls = getattr(work, "calls", 0) + 1
if work.calls == 4:
    import core
    ran(core.work())
"""
CAPTURED = "text=True, capture_output=True, check=True, cwd='/'"
POOL = """\
import multiprocessing.resource_tracker, core
with multiprocessing.get_context('METHOD').Pool(1) as pool:
    ran(pool.apply(core.work))
multiprocessing.resource_tracker._resource_tracker._stop()  # else it may outlive the worker
"""


def cases(bodies: Mapping[str, str], top: str = "") -> dict[str, str]:
    """Return a benchmark file for each body, whose case and markers have the body's name."""
    return {
        f"benchmarks/bench_{name}.py": benchmark(
            body.replace("ran(", f"ran('{name}: ' + "), top
        ).replace("def case", f"def {name}")
        for name, body in bodies.items()
    }


def own_of(bodies: Iterable[str]) -> set[str]:
    """Return the markers of both sides where each body ran its side's own code."""
    return {f"{side} ran {name}: {side}" for name in bodies for side in ("base", "head")}


@pytest.mark.parametrize(
    "body",
    [
        "import core\nran(core.work())",
        LATER,
    ],
    ids=["in the function", "in a later call"],
)
def test_an_import_from_the_checkout_names_the_file_and_the_line_to_write(
    project: Project, body: str
) -> None:
    far = f"libs/core/{INIT}"
    two_sides(project, far, {BENCH: benchmark(body, calls=4), far: PACKAGE})
    report = Session(project, editable(project, "libs/core")).compare()
    assert report["verdict"]["status"] == "error"
    assert {failure["side"] for failure in report["failures"]} == {"base", "head"}
    for failure in report["failures"]:
        assert f"{far} out, which isn't its code" in failure["message"]
        assert "add that folder to `python_path`" in failure["message"]


def test_a_single_file_module_and_a_file_loaded_by_its_path_are_named(project: Project) -> None:
    body = "import single\nran(single.work())"
    two_sides(project, "tools/single.py", {BENCH: benchmark(body), "tools/single.py": PACKAGE})
    session = Session(project, editable(project, "tools"))
    (failure,) = session.run()["failures"]
    assert "tools/single.py out" in failure["message"]
    path = project.folder / "tools/single.py"
    project.write(BENCH, benchmark(f"import runpy\nran(runpy.run_path({str(path)!r})['work']())"))
    project.commit("by its path")
    assert "tools/single.py of the user's checkout" in wrong(session.run())


def test_a_namespace_package_is_the_sides_own(project: Project) -> None:
    name = "ns/core/__init__.py"
    top = "import sys\nfrom importlib.machinery import PathFinder\nimport ns.core"
    two_sides(project, name, {BENCH: benchmark("ran(ns.core.work())", top), name: PACKAGE})
    session = Session(project, editable(project, "."))
    report = session.compare()
    right(report)
    assert session.markers() == OWN


def test_a_function_of_the_benchmarks_file_runs_its_sides_code_in_a_spawned_process(
    project: Project,
) -> None:
    marking = POOL.replace("ran(pool.apply(core.work))", "pool.apply(mark, ('NAME: ',))")
    bodies = {
        name: marking.replace("METHOD", name).replace("NAME", name)
        for name in ("spawn", "forkserver")
    }
    top = "def mark(way):\n    import core\n    ran(way + core.work())"
    two_sides(project, INIT, {**cases(bodies, top), INIT: PACKAGE})
    session = Session(project, editable(project, "."))
    with TemporaryDirectory() as short:  # a forkserver's socket has a path of 107 bytes at most
        project.cache = Path(short)
        right(session.compare())
    assert session.markers() == own_of(bodies)


RUN = "ran(subprocess.run([{}], " + CAPTURED + ").stdout.strip())"
CHILDREN = {
    "another_python": RUN.format(f"sys.executable, '-c', {CHILD!r}"),
    "spawn": POOL.replace("METHOD", "spawn"),
    "fork": POOL.replace("METHOD", "fork"),
    "shell": f"ran(os.popen(f'cd / && {{sys.executable}} -c \\'{CHILD}\\'').read().strip())",
    "console_script": RUN.format("TOOL"),
}


def test_children_import_their_sides_code_before_any_import_hook(project: Project) -> None:
    python, packages = venv(project)
    import_hook(packages, "core", project.folder)
    tool = Path(python).with_name("tool")
    tool.write_text(f"#!{python}\nimport core\nprint(core.work())\n")
    tool.chmod(0o755)
    two_sides(project, INIT, {**cases(CHILDREN, f"TOOL = {str(tool)!r}"), INIT: PACKAGE})
    session = Session(project, python)
    right(session.compare())
    assert session.markers() == own_of(CHILDREN)


def test_an_extension_that_only_the_checkout_has_is_an_error_with_the_build(
    project: Project,
) -> None:
    top = "import core\ntry:\n    from core import _C\nexcept ImportError:\n    _C = core"
    files = {BENCH: benchmark("ran(_C.work())", top), INIT: PACKAGE, "setup.py": SETUP_PY}
    project.commit("base", **files, **{".gitignore": "*.so\n"})
    project.git("branch", "feature")
    compiled(project.folder / "core" / f"_C{SUFFIX}", "checkout")
    python, packages = venv(project)
    import_hook(packages, "core._C", project.folder / "core")
    session = Session(project, python)
    done = session.project.perfci(
        "compare",
        "main",
        "feature",
        "--allow-same-commit",
        "--base-python",
        python,
        "--head-python",
        python,
        MARKERS="/tmp",
    )
    assert done.code == 2, done.text
    assert f"core/_C{SUFFIX} of the user's checkout" in done.err
    assert "`{python} setup.py build_ext --inplace`" in done.err


def test_a_library_of_the_checkout_that_is_loaded_is_an_error(project: Project) -> None:
    """Torch's ``load_library`` calls the same."""
    path = compiled(project.folder / "build" / "libwork.so", "checkout")
    body, top = "ctypes.CDLL(LIBRARY)", f"import ctypes\nLIBRARY = {str(path)!r}"
    project.commit("one", **{BENCH: benchmark(body, top), ".gitignore": "build/\n"})
    project.git("branch", "feature")
    said = wrong(Session(project).run())
    assert "build/libwork.so of the user's checkout" in said


def test_a_zipped_egg_and_a_module_of_an_installed_copy_are_errors(project: Project) -> None:
    project.write(
        "pyproject.toml",
        (project.folder / "pyproject.toml").read_text() + '\n[project]\nname = "My_Core"\n',
    )
    project.commit(
        "one", **{BENCH: benchmark("import single\nran(single.work())"), "libs/single.py": PACKAGE}
    )
    project.git("branch", "feature")
    python, packages = venv(project)
    egg = packages / "my_core-1.0.egg"
    with zipfile.ZipFile(egg, "w") as archive:
        archive.writestr("single.py", PACKAGE)
        archive.writestr(
            "EGG-INFO/PKG-INFO", "Metadata-Version: 2.1\nName: my-core\nVersion: 1.0\n"
        )
    (packages / "eggs.pth").write_text(f"{egg}\n")
    session = Session(project, python)
    assert "an installed copy of the project" in wrong(session.run())
    egg.unlink()
    (packages / "single.py").write_text(PACKAGE)
    told = packages / "my_core-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: my-core\nVersion: 1.0\n")
    (told / "RECORD").write_text("single.py,,\nmy_core-1.0.dist-info/METADATA,,\n")
    assert "an installed copy of the project" in wrong(session.run())


def test_data_of_a_package_is_its_sides_own(project: Project) -> None:
    data = "core/data.txt"
    body = (
        "from importlib.resources import files\nran(files('core').joinpath('data.txt').read_text())"
    )
    two_sides(project, data, {BENCH: benchmark(body), INIT: PACKAGE, data: "base"})
    session = Session(project, editable(project, "."))
    right(session.compare())
    assert session.markers() == OWN


def test_what_only_head_has_is_missing_in_base_and_no_error(project: Project) -> None:
    files = {BENCH: benchmark("core.work()", "import core"), INIT: PACKAGE}
    project.commit("base", **files)
    project.git("branch", "main2")
    project.git("checkout", "--quiet", "-b", "feature")
    new = benchmark("core.fast.work()", "import core.fast")
    project.commit(
        "head",
        **{
            "benchmarks/bench_fast.py": new.replace("def case", "def fast"),
            "core/fast.py": PACKAGE,
        },
    )
    report = Session(project, editable(project, ".")).compare()
    rows = {
        row["case"]: row["status"] for row in report["results"] if row["metric"] == "latency_p50"
    }
    assert rows["fast"] == "new", report["verdict"]
    assert report["verdict"]["status"] != "error"


@pytest.mark.parametrize("package", [False, True], ids=["a folder", "a package"])
def test_both_sides_import_heads_helpers_of_the_benchmarks(
    project: Project, *, package: bool
) -> None:
    """Each side's own would let a pull request measure head with less work than base."""
    common = "benchmarks/common.py"
    top = "import core\nfrom benchmarks.common import work as helped"
    files = {BENCH: benchmark("ran(helped())\ncore.work()", top), common: PACKAGE, INIT: PACKAGE}
    two_sides(project, common, files | ({"benchmarks/__init__.py": ""} if package else {}))
    session = Session(project)
    right(session.compare())
    assert session.markers() == {"base ran head", "head ran head"}


def test_a_library_loaded_by_its_path_from_the_benchmarks_tree_is_its_sides_own(
    project: Project,
) -> None:
    top = "sys.path.insert(0, HERE_)\n".replace(
        "HERE_", "os.path.dirname(os.path.dirname(os.path.abspath(__file__)))"
    )
    body = "import runpy\nran(runpy.run_path(HERE + '/core/__init__.py')['work']())"
    two_sides(project, INIT, {BENCH: benchmark(body, top), INIT: PACKAGE})
    session = Session(project)
    right(session.compare())
    assert session.markers() == OWN


def test_what_a_build_makes_among_the_benchmarks_is_there_on_both_sides(project: Project) -> None:
    project.write(
        "pyproject.toml",
        project.folder.joinpath("pyproject.toml")
        .read_text()
        .replace(
            "[tool.perfci]", "[tool.perfci]\nbuild = [\"sh -c 'echo built > benchmarks/made.txt'\"]"
        ),
    )
    body = "ran(open(os.path.dirname(__file__) + '/made.txt').read().strip() + core.work())"
    two_sides(project, INIT, {BENCH: benchmark(body, "import core"), INIT: PACKAGE})
    session = Session(project)
    right(session.compare())
    assert session.markers() == {"base ran builtbase", "head ran builthead"}


@pytest.mark.parametrize(
    "removing",
    [
        "for name in os.listdir(folder):\n    os.unlink(os.path.join(folder, name))",
        "shutil.rmtree(folder, ignore_errors=True)",
    ],
    ids=["files", "folder"],
)
def test_a_worker_that_removes_what_it_wrote_down_is_not_believed(
    project: Project, removing: str
) -> None:
    folder = "folder = os.path.join(os.path.dirname(os.environ['TMPDIR']), 'ran')"
    body = f"{folder}\n{removing}\nimport colorsys"
    project.commit("one", **{BENCH: benchmark(body, top="import shutil")})
    project.git("branch", "feature")
    assert "could not be written" in wrong(Session(project).run())


def test_base_that_takes_heads_new_package_from_an_installed_copy_is_an_error(
    project: Project,
) -> None:
    python, packages = venv(project)
    (packages / "newer").mkdir()
    (packages / "newer" / "__init__.py").write_text(PACKAGE)
    old = "try:\n    import newer\nexcept ImportError:\n    newer = None\n"
    project.commit("base", **{BENCH: benchmark("pass", "import core"), INIT: old})
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit("head", **{"newer/__init__.py": PACKAGE})
    done = project.perfci(
        "compare", "main", "feature", "--base-python", python, "--head-python", python
    )
    assert "an installed copy of the project: not base's own code" in done.text
    assert "not head's" not in done.text


def test_what_a_build_installs_outside_of_the_trees_is_wrong_with_a_kept_build_too(
    project: Project, tmp_path: Path
) -> None:
    """Both sides ran what the last build had left below HOME, and a slow-down passed."""
    place = tmp_path / "home" / "work.py"
    place.parent.mkdir()
    settings = (project.folder / "pyproject.toml").read_text()
    project.write("pyproject.toml", f'{settings}build = ["cp {INIT} {place}"]\n')
    body = f"import runpy\nran(runpy.run_path({str(place)!r})['work']())"
    two_sides(project, INIT, {BENCH: benchmark(body), INIT: PACKAGE})
    session = Session(project)
    for _ in range(2):
        said = wrong(session.compare())
        assert "work.py, written during a build or this session" in said
        assert "Let `build` write into the tree" in said


@pytest.mark.parametrize("called", ["{place}", "tool"])
def test_a_program_that_a_build_installs_outside_of_the_trees_is_wrong(
    project: Project, tmp_path: Path, called: str
) -> None:
    place = tmp_path / "home" / "tool"
    place.parent.mkdir()
    settings = (project.folder / "pyproject.toml").read_text()
    project.write("pyproject.toml", f'{settings}build = ["install tool.sh {place}"]\n')
    path = f"os.environ['PATH'] += ':{place.parent}'"
    words = f"[{called.format(place=place)!r}]"
    bench = f"import os\nimport perfci\n{path}\n@perfci.benchmark\n"
    bench += f"def case():\n    return perfci.command({words})\n"
    files = {BENCH: bench, "tool.sh": "#!/bin/sh\nexec true\n"}
    two_sides(project, "tool.sh", files)
    assert f"{place}, written during a build" in wrong(Session(project).compare())
