"""Build the wheel, and try it and an editable install in fresh environments.

    python tests/wheel_check.py

Asserts the wheel's contents, and that both installs find the templates and render a comment. The
wheel's dependencies are those of the commenting job's lock, which builds perfci, too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "templates" / "workflows" / "perfci-requirements.txt"
RENDER = """
from pathlib import Path
import perfci
from perfci.report.formats import render
from perfci.record.report import Report, Timing, Verdict
from perfci.record.run import Environment, Side
report = Report(perfci.__version__, "2026-01-01T00:00:00+00:00", "compare", None,
                Side("HEAD", "0" * 40, "python"), Environment("key", {}), Verdict("pass", ()),
                Timing(1.0, 0.5, 5), (), ())
assert render(report, "markdown").startswith("<!-- perfci")
print(Path(perfci.__file__).parent)
"""


def main() -> int:
    """Check the wheel, a normal install of it, and an editable install."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist", ROOT)
        (wheel,) = (folder / "dist").glob("*.whl")
        check_contents(wheel)
        normal = try_install(folder / "normal", "--no-deps", str(wheel), lock=True)
        assert "site-packages" in normal, normal
        editable = try_install(folder / "editable", "-e", str(ROOT))
        assert editable == str(ROOT / "perfci"), editable
    print("wheel check: contents, normal install and editable install are right")
    return 0


def check_contents(wheel: Path) -> None:
    """Assert what the wheel holds and what it doesn't."""
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "perfci/py.typed",
        "perfci/templates/comment.md.j2",
        "perfci/templates/comment_parts.md.j2",
        "perfci/templates/workflows/perfci.yml.j2",
        "perfci/templates/workflows/perfci-requirements.txt",
        "perfci/store/history/migrations/env.py",
        "perfci/store/history/migrations/versions/r0001_runs.py",
        "perfci/templates/trend/overview.html.j2",
        "perfci/templates/trend/trend.css",
        "perfci/worker/bootstrap.py",
        "perfci/measure/leftovers.py",
    ):
        assert needed in names, f"{needed} is not in the wheel"
    assert any(name.endswith("licenses/LICENSE") for name in names), names
    strangers = [name for name in names if not name.startswith(("perfci/", "perfci-"))]
    assert not strangers, strangers


def try_install(folder: Path, *what: str, lock: bool = False) -> str:
    """Install into a fresh environment, run the command and a render; return where perfci is."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    if lock:
        hashed = ("--require-hashes", "--only-binary", ":all:", "-r", LOCK)
        run(python, "-m", "pip", "install", "--quiet", *hashed)
        unaided = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
        run(python, "-m", "pip", "wheel", "--quiet", *unaided, ROOT)
    run(python, "-m", "pip", "install", "--quiet", "-c", constraints, *what)
    run(python, "-m", "pip", "check")
    run(folder / "bin" / "perfci", "--version")
    run(folder / "bin" / "perfci", "--help")
    done = subprocess.run(
        [str(python), "-c", RENDER], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def run(*command: object) -> None:
    """Run a command away from the checkout, so that nothing is found by luck."""
    scratch = tempfile.mkdtemp()
    try:
        subprocess.run([str(part) for part in command], cwd=scratch, check=True)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    raise SystemExit(main())
