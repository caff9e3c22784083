"""Build a release's files, and try the wheel and an editable install in fresh environments.

    python -m tests.wheel_check

Asserts the wheel's contents, that an index can show its page, and that both installs find the
templates and render a comment. The wheel's dependencies are those of the commenting job's lock,
which builds perfci, too. Then perfci is installed apart, by uv and by the action, and measures with
an environment that has torch and nothing of perfci.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.builders.project import Project
from tests.workflows.examples import parsed, run_step, step

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "templates" / "workflows" / "perfci-requirements.txt"
RENDER = """
from pathlib import Path
import perfci
from perfci.report.exporters import exporter
from perfci.model.report import Report, Timing, Verdict
from perfci.model.run import Environment, Side
report = Report(perfci.__version__, "2026-01-01T00:00:00+00:00", "compare", None,
                Side("HEAD", "0" * 40, "python"), Environment("key", {}), Verdict("pass", ()),
                Timing(1.0, 0.5, 5), (), ())
assert exporter("markdown").render(report).startswith("<!-- perfci")
print(Path(perfci.__file__).parent)
"""


def main() -> int:
    """Check the wheel, a normal install of it, and an editable install."""
    os.environ["PIP_COMPILE"] = "0"  # all of scipy: longer than what is tried takes
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run(
            sys.executable, "-m", "build", "--installer=uv", "--outdir", folder / "dist", ROOT
        )  # the wheel of the sdist
        (wheel,) = (folder / "dist").glob("*.whl")
        check_contents(wheel)
        check_page(folder / "dist")
        normal = try_install(folder / "normal", "--no-deps", str(wheel), lock=True)
        assert "site-packages" in normal, normal
        editable = try_install(folder / "editable", "-e", str(ROOT), uv=True)
        assert editable == str(ROOT / "perfci"), editable
        theirs = torch_environment(folder / "theirs")
        project = torch_project(folder / "project", theirs)
        try_tool(folder / "tool", wheel, project)
        try_action(folder / "action", project, theirs)
    print("wheel check: contents, installs, and measuring from an isolated install are right")
    return 0


def check_contents(wheel: Path) -> None:
    """Assert what the wheel holds and what it doesn't."""
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "perfci/py.typed",
        "perfci/schemas/perfci.schema.json",
        "perfci/schemas/pyproject.schema.json",
        "perfci/schemas/report.schema.json",
        "perfci/schemas/bisection.schema.json",
        "perfci/templates/comment.md.j2",
        "perfci/templates/comment_parts.md.j2",
        "perfci/templates/workflows/perfci.yml.j2",
        "perfci/templates/init/next.txt",
        "perfci/templates/workflows/perfci-requirements.txt",
        "perfci/templates/trend/overview.html.j2",
        "perfci/templates/trend/trend.css",
        "perfci/templates/report/page.html.j2",
        "perfci/worker/bootstrap.py",
        "perfci/measure/process_cleanup.py",
    ):
        assert needed in names, f"{needed} is not in the wheel"
    assert any(name.endswith("licenses/LICENSE") for name in names), names
    strangers = [name for name in names if not name.startswith(("perfci/", "perfci-"))]
    assert not strangers, strangers


def check_page(dist: Path) -> None:
    """Assert that a package index can show what it is given of both files."""
    place = (
        "tool",
        "run",
        f"--python={sys.executable}",
        f"--constraints={ROOT / 'constraints.txt'}",
    )
    run(sys.executable, "-m", "uv", *place, "twine", "check", "--strict", *dist.iterdir())


def try_install(folder: Path, *what: str, lock: bool = False, uv: bool = False) -> str:
    """Install into a fresh environment, run the command and a render; return where perfci is."""
    venv.create(folder, with_pip=not uv)
    python = folder / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    pip = (sys.executable, "-m", "uv", "pip") if uv else (python, "-m", "pip")
    into = (f"--python={python}",) if uv else ()
    if lock:
        hashed = ("--require-hashes", "--only-binary", ":all:", "-r", LOCK)
        run(python, "-m", "pip", "install", "--quiet", *hashed)
        unaided = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
        run(python, "-m", "pip", "wheel", "--quiet", *unaided, ROOT)
    run(*pip, "install", *into, "--quiet", "-c", constraints, *what)
    run(*pip, "check", *into)
    run(folder / "bin" / "perfci", "--version")
    run(folder / "bin" / "perfci", "--help")
    done = subprocess.run(
        [str(python), "-c", RENDER], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def torch_environment(folder: Path) -> Path:
    """Return the Python of an environment that has torch and what it needs, nothing of perfci."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in required("torch", set()):
        files = distribution(name).files or ()
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (packages / top).symlink_to(Path(distribution(name).locate_file(top)))
    python = folder / "bin" / "python"
    found = subprocess.run(
        [python, "-P", "-c", "import torch, importlib.util as u; print(u.find_spec('perfci'))"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert found == "None\n", found
    return python


def required(name: str, known: set[str]) -> set[str]:
    """Add a package and all that it requires here to ``known``, and return that."""
    if name not in known:
        known.add(name)
        for text in distribution(name).requires or ():
            one = Requirement(text)
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                required(one.name, known)
    return known


def torch_project(folder: Path, python: Path) -> Project:
    """Return a project with two commits, whose configuration names its environment."""
    project = Project(folder)
    with (folder / "pyproject.toml").open("a") as file:
        file.write(f'python = "{python}"\n')
    project.write(
        "benchmarks/bench_sum.py",
        "import perfci, torch\n\n@perfci.benchmark\ndef total():\n    return torch.ones(99).sum\n",
    )
    project.commit("base")
    project.commit("head")
    return project


def try_tool(folder: Path, wheel: Path, project: Project) -> None:
    """Install the wheel by ``uv tool install`` and compare, with the configuration's Python."""
    places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    subprocess.run(
        [sys.executable, "-m", "uv", "tool", "install", "--quiet", f"--python={sys.executable}",
         f"--constraints={ROOT / 'constraints.txt'}", wheel],
        env={**os.environ, **places}, check=True,
    )  # fmt: skip
    report = folder / "report.json"
    done = subprocess.run(
        [folder / "bin" / "perfci", "compare", "HEAD~1", "HEAD", "--quiet", "--json", report],
        cwd=project.folder, env=project.environment(), check=False,
    )  # fmt: skip
    measured_total(report, done.returncode)


def try_action(folder: Path, project: Project, theirs: Path) -> None:
    """Run the action's two steps as a runner does."""
    folder.mkdir()
    action = parsed((ROOT / "action.yml").read_text(encoding="utf-8"))
    given = {name: spec["default"] for name, spec in action["inputs"].items()}
    given |= {"python": str(theirs), "base": "HEAD~1"}
    environment = {
        **{f"PERFCI_{name.upper()}": value for name, value in given.items()},
        "PERFCI_CACHE_DIR": str(project.cache),
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "RUNNER_TEMP": str(folder),
    }
    before = set(theirs.parent.parent.rglob("*"))
    for name in ("Install perfci", "Measure"):
        done = run_step(step(action, name)["run"], project.folder, **environment)
        assert name == "Measure" or done.returncode == 0, done.stdout + done.stderr
    (report,) = folder.glob("perfci-*/report.json")
    measured_total(report, done.returncode)
    assert not [
        path for path in set(theirs.parent.parent.rglob("*")) - before if "perfci" in path.name
    ]


def measured_total(report: Path, code: int) -> None:
    """Assert that a comparison of the two commits ended in a verdict of what torch did."""
    assert code in {0, 1}, code
    content = json.loads(report.read_text(encoding="utf-8"))
    assert {row["case"] for row in content["results"]} == {"total"}
    assert content["verdict"]["status"] != "error", content["verdict"]


def run(*command: object) -> None:
    """Run a command away from the checkout, so that nothing is found by luck."""
    scratch = tempfile.mkdtemp()
    try:
        subprocess.run([str(part) for part in command], cwd=scratch, check=True)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    raise SystemExit(main())
