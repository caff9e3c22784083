"""What lies in no place that is known: a prefix, a temporary folder, a build folder of a tool's."""

from __future__ import annotations

import subprocess

import pytest

from tests.builders.project import Project
from tests.measure.provenance.installs import (
    PACKAGE,
    Session,
    benchmark,
    right,
    two_sides,
    venv,
    wrong,
)

pytestmark = pytest.mark.processes

BENCH = "benchmarks/bench_case.py"
INIT = "core/__init__.py"
JIT = """\
import ctypes, os, subprocess, tempfile
from pathlib import Path

def work():
    source, out = Path(__file__).with_name("k.c"), Path(tempfile.gettempdir(), "core-k.so")
    if not out.exists():
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", out, source], check=True)
    return ["base", "head"][ctypes.CDLL(str(out)).k()]
"""


def test_what_is_compiled_into_the_temporary_folder_is_each_sides_own(project: Project) -> None:
    body = benchmark("ran(core.work())", "import core")
    source = "int k(void) { return BASE; }\n"
    files = {BENCH: body, INIT: JIT, "core/k.c": source.replace("BASE", "0")}
    project.commit("base", **files)
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit("head", **{"core/k.c": source.replace("BASE", "1")})
    session = Session(project)
    report = session.compare()
    right(report)
    assert session.markers() == {"base ran base", "head ran head"}
    assert report["same_code"] == []


def test_a_library_of_a_prefix_that_differs_is_not_the_same_code(project: Project) -> None:
    prefix = project.folder.parent / "prefix"
    for side in ("base", "head"):
        (prefix / side).mkdir(parents=True)
        target = prefix / side / "libk.so"
        source = f'const char *k(void) {{ return "{side}"; }}'
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-xc", "-o", str(target), "-"],
            input=source.encode(),
            check=True,
        )
    load = (
        "import ctypes\nside = 'head' if os.environ['TMPDIR'].endswith('tmph') else 'base'\n"
        f"ctypes.CDLL({str(prefix)!r} + f'/{{side}}/libk.so')"
    )
    two_sides(project, "README.md", {BENCH: benchmark(load), "README.md": "base"})
    report = Session(project).compare()
    right(report)
    assert report["same_code"] == []


def test_a_module_of_the_project_that_lies_nowhere_known_is_a_copy(project: Project) -> None:
    other = project.folder.parent / "built" / "core"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text(PACKAGE)
    body = (
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('core', {str(other / '__init__.py')!r})\n"
        "sys.modules['core'] = importlib.util.module_from_spec(spec)"
    )
    two_sides(project, INIT, {BENCH: benchmark(body), INIT: PACKAGE})
    assert "an installed copy of the project" in wrong(Session(project).compare())


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


def test_a_library_in_the_benchmarks_folder_is_heads_and_a_note_names_it(project: Project) -> None:
    project.write(
        "pyproject.toml",
        (project.folder / "pyproject.toml")
        .read_text()
        .replace("[tool.perfci]", '[tool.perfci]\nbenchmarks = "lib"'),
    )
    library = "lib/core.py"
    files = {"lib/bench_w.py": benchmark("ran(core.work())", "import core"), library: PACKAGE}
    two_sides(project, library, files)
    session = Session(project)
    report = session.compare()
    assert session.markers() == {"base ran head", "head ran head"}
    assert report["same_code"] == []
    assert any(library in note and "differs in base" in note for note in report["notes"])


@pytest.mark.parametrize("end", ["raise ValueError", "os.kill(os.getpid(), 9)"])
def test_a_worker_that_fails_is_no_fork_that_ended_unseen(project: Project, end: str) -> None:
    files = {BENCH: benchmark(end), INIT: PACKAGE, "README.md": "base"}
    two_sides(project, "README.md", files)
    report = Session(project).compare()
    assert {failure["case"] for failure in report["failures"]} == {"case"}
    assert report["ran"]["head"]["unknown"] == []


def test_a_fork_that_ends_unseen_is_not_known_to_be_the_same(project: Project) -> None:
    body = "if os.fork() == 0:\n    import core\n    os._exit(0)\nos.wait()"
    files = {BENCH: benchmark(body), INIT: PACKAGE, "README.md": "base"}
    two_sides(project, "README.md", files)
    report = Session(project).compare()
    right(report)
    assert report["same_code"] == []
    assert report["ran"]["head"]["unknown"] == ["unseen fork"]
