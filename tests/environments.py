"""Run the tests that need neither torch nor a browser in other environments than the usual one.

    python -m tests.environments lowest       the oldest versions that pyproject.toml allows
    python -m tests.environments 3.12 3.13    other Pythons, with the versions of constraints.txt

uv resolves and installs: pip can't be asked for the oldest. A Python that isn't on this machine is
left out, and said. Nothing is built, so the floor of a library has to have a wheel for Python 3.11.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = "3.11"
FOLDERS = ("baselines", "checkout", "config", "history", "forges/github", "report")
"""Those whose tests call the libraries."""
WITH_VERSIONS = ("importers", "stats", "trend", "verdict")
"""Mathematics and files of text: they differ with the libraries' versions, not with Python."""
WITH_PYTHON = ("api", "worker")
"""What workers run is of the standard library alone: it differs with Python, not with versions.

Of several Pythons the newest alone runs ``FOLDERS`` too: what a Python between it and the one of
``make test-all`` has, one of these two has as well.
"""
BESIDE = ("cli/test_commands.py",)
SLOW = ("checkout/test_build.py", "checkout/test_disk.py", "checkout/test_environment.py",
        "checkout/test_worktree.py",
        "importers/test_importers.py", "history/test_commands.py", "history/test_many_writers.py",
        "forges/github/test_comment_command.py", "report/test_exporters.py",
        "report/page/test_in_browser.py", "report/site", "report/test_exports.py",
        "report/test_gallery.py", "report/test_json_report.py", "report/test_limits.py",
        "verdict/test_same_facts.py", "worker/test_devices.py")  # fmt: skip
"""Many processes, a browser, or an installation by pip, and no library that the others don't call.

Three compare whole files, in which the last digit of a p is that of the newest scipy.
"""


def main(names: list[str]) -> int:
    """Run the tests in each environment; return 0 where all passed."""
    return max([tested(name, folders_of(name, names)) for name in names], default=0)


def folders_of(name: str, names: list[str]) -> tuple[str, ...]:
    """Return the folders whose tests may end otherwise there than in the others."""
    if name == "lowest":
        return (*FOLDERS, *WITH_VERSIONS)
    newest = max(names, key=lambda one: [int(part) for part in one.split(".") if part.isdigit()])
    return (*FOLDERS, *WITH_PYTHON) if name == newest else WITH_PYTHON


def tested(name: str, folders: tuple[str, ...]) -> int:
    """Make the environment, run the tests in it, and return pytest's exit code."""
    version = OLDEST_PYTHON if name == "lowest" else name
    found = python(version)
    if found is None:
        print(f"environment {name}: not tested, there is no Python {version} here", flush=True)
        return 0
    choice = (
        ("--resolution=lowest-direct",) if name == "lowest" else ("--constraint=constraints.txt",)
    )
    with tempfile.TemporaryDirectory(prefix="perfci-environment-") as folder:
        own = f"{folder}/bin/python"
        uv("venv", "--python", found, folder)
        uv(
            *("pip", "install", f"--python={own}", "--only-binary=:all:", "--no-binary=perfci"),
            *(*choice, "--group=test", "--editable=.[github,postgres]"),
        )
        print(f"environment {name}: {described(own)}", flush=True)
        return subprocess.run(
            [
                *(own, "-m", "pytest", "--quiet", "--numprocesses=2", "--dist=worksteal"),
                *("--durations=5", *chosen(folders)),
            ],
            cwd=ROOT,
            check=False,
        ).returncode


def chosen(folders: tuple[str, ...]) -> list[str]:
    """Return what pytest is to run; AssertionError where a name is none of a test's."""
    tests = ROOT / "tests"
    paths = [
        *sorted(tests.glob("test_*.py")),
        *(tests / name for name in (*folders, *BESIDE)),
    ]
    slow = [tests / name for name in SLOW]
    assert all(path.exists() for path in (*paths, *slow))
    slow = [path for path in slow if any(path.is_relative_to(folder) for folder in paths)]
    return [*map(str, paths), *(f"--ignore={path}" for path in slow)]


def python(version: str) -> str | None:
    """Return a Python of that version: this one, one on PATH that starts, or one of pyenv's."""
    places = [
        sys.executable,
        shutil.which(f"python{version}"),
        *sorted(pyenv().glob(f"versions/{version}.*/bin/python{version}"), reverse=True),
    ]
    return next((str(place) for place in places if place and is_version(place, version)), None)


def pyenv() -> Path:
    return Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))


def is_version(place: str | Path, version: str) -> bool:
    """Return whether that Python starts (pyenv's shims may not) and is of the version."""
    asked = [place, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return (
        subprocess.run(asked, capture_output=True, text=True, check=False).stdout == f"{version}\n"
    )


def described(own: str) -> str:
    """Return the environment's Python and the versions of what perfci asks for."""
    code = (
        "import platform, re; from importlib.metadata import requires, version\n"
        "names = {re.match('[A-Za-z0-9._-]+', one)[0] for one in requires('perfci')} - {'torch'}\n"
        "shown = (f'{name} {version(name)}' for name in sorted(names, key=str.lower))\n"
        "print('Python', platform.python_version(), *shown, sep=', ')"
    )
    return subprocess.run(
        [own, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def uv(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", "--quiet", *arguments], cwd=ROOT, check=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
