"""A project that is installed in a virtual environment, and what its benchmarks ran."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from tests.builders.project import Project, one_round
from tests.plugins import bare_environment

QUICK = ("--budget", "60s")
PACKAGE = 'def work():\n    return "base"\n'


def venv(project: Project) -> tuple[str, Path]:
    """Return a Python of its own, which sees what this one has, and its ``site-packages``."""
    return bare_environment(project.folder.parent / "venv", site_packages=True)


def editable(project: Project, *folders: str) -> str:
    """Return a Python with folders of the checkout on ``sys.path``, as `pip install -e` does."""
    python, packages = venv(project)
    lines = [str(project.folder / one) for one in folders]
    (packages / "project.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return python


def import_hook(packages: Path, name: str, folder: Path) -> None:
    """Install a finder at the head of ``sys.meta_path``, as some editable installs do."""
    (packages / "hook_of_editable.py").write_text(
        "import sys\nfrom importlib.machinery import PathFinder\n\n"
        "class First:\n    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {name!r}:\n"
        f"            return PathFinder.find_spec(name, [{str(folder)!r}])\n\n"
        "sys.meta_path.insert(0, First())\n"
    )
    (packages / "hook.pth").write_text("import hook_of_editable\n")


def benchmark(body: str, top: str = "", setup: str = "", *, calls: int = 1) -> str:
    """Return a benchmark file whose work is ``body``, in which ``ran(marker)`` writes it down.

    Only a worker's first ``calls`` do it: many start a process.
    """
    indented = "\n".join(f"            {line}" for line in body.splitlines())
    before = "".join(f"    {line}\n" for line in setup.splitlines())
    return (
        f"import os, subprocess, sys\nimport perfci\n{top}\n\n"
        "def ran(marker):\n"
        '    side = "head" if os.environ["TMPDIR"].endswith("tmph") else "base"\n'
        f'    open(f"{{os.environ[\'MARKERS\']}}/{{side}} ran {{marker}}", "w").close()\n\n'
        "HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))\n\n"
        f"@perfci.benchmark\ndef case():\n    calls = iter(range({calls}))\n{before}"
        f"    def work():\n        if next(calls, None) is not None:\n{indented}\n    return work\n"
    )


def two_sides(project: Project, changed: str, files: dict[str, str]) -> None:
    """Commit ``files`` on main, and on ``feature`` with ``base`` replaced in ``changed``.

    The checkout is then neither: whoever runs its code runs ``checkout``.
    """
    project.commit("base", **files)
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit("head", **{changed: files[changed].replace("base", "head")})
    project.write(changed, files[changed].replace("base", "checkout"))


def brief(settings: str) -> str:
    """Return the configuration with workers that end soon: how long a call takes is no matter."""
    for long, short in (
        ("warmup = 0.01", "warmup = 0.005"),
        ("round_time = 0.01", "round_time = 0.004"),
        ("burst = 0.002", "burst = 0.001"),
    ):
        assert long in settings, settings
        settings = settings.replace(long, short)
    return settings


class Session:
    """A project's ``compare`` or ``run``, and the markers that its benchmarks left."""

    def __init__(self, project: Project, python: str = sys.executable) -> None:
        self.project = project
        self.python = python
        self.folder = project.folder.parent / "markers"
        self.folder.mkdir(exist_ok=True)
        text = (project.folder / "pyproject.toml").read_text()
        if "pass_env" not in text:
            marked = text.replace("[tool.perfci]", '[tool.perfci]\npass_env = ["MARKERS"]')
            project.write("pyproject.toml", brief(marked))

    def compare(self, *more: str) -> dict[str, Any]:
        return self._report(
            *("compare", "main", "feature", "--base-python", self.python),
            *("--head-python", self.python, *QUICK, *more),
        )

    def run(self) -> dict[str, Any]:
        return self._report("run", "feature", "--python", self.python, *QUICK)

    def markers(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def _report(self, *arguments: str) -> dict[str, Any]:
        path = self.project.folder.parent / "report.json"
        with one_round():
            done = self.project.perfci(*arguments, "--json", str(path), MARKERS=str(self.folder))
        assert path.exists(), done.text
        self.said = done.without_traceback().text
        return json.loads(path.read_text(encoding="utf-8"))


def wrong(report: dict[str, Any]) -> str:
    """Return the message of the only case's failure, which is the same on every side."""
    assert report["verdict"]["status"] == "error", report["verdict"]
    assert {failure["kind"] for failure in report["failures"]} == {"wrong_code"}, report["failures"]
    return str(report["failures"][-1]["message"])


def right(report: dict[str, Any]) -> None:
    assert not report["failures"], report["failures"]
    assert report["results"], report


def compiled(target: Path, marker: str, name: str = "_C") -> Path:
    """Compile an extension module that has ``work()``."""
    source = target.parent / f"{name}.c"
    target.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(
        "#include <Python.h>\n"
        "static PyObject *work(PyObject *s, PyObject *a)\n"
        f'{{ return PyUnicode_FromString("{marker}"); }}\n'
        'static PyMethodDef m[] = {{"work", work, METH_NOARGS, ""}, {0}};\n'
        f'static struct PyModuleDef d = {{PyModuleDef_HEAD_INIT, "{name}", "", -1, m}};\n'
        f"PyMODINIT_FUNC PyInit_{name}(void) {{ return PyModule_Create(&d); }}\n"
        f'const char *plain(void) {{ return "{marker}"; }}\n'
    )
    include = f"-I{sysconfig.get_paths()['include']}"
    command = ["gcc", "-shared", "-fPIC", include, str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    source.unlink()
    return target
