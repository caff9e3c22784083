"""Run tests that need neither torch nor a browser in other environments than the usual one.

    python -m tests.environments lowest       the oldest versions that pyproject.toml allows
    python -m tests.environments 3.12 3.13    other Pythons, with the versions of constraints.txt

uv resolves and installs: pip can't be asked for the oldest. A Python that isn't on this machine is
left out, and said. Nothing is built, so the floor of a library has to have a wheel for Python 3.11.
What `make test-all` runs isn't run again here: only what another version may answer otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = "3.11"
CALLING: Mapping[str, tuple[str, ...]] = {
    "click": ("cli/test_commands.py",),
    "GitPython": ("checkout/test_repository.py",),
    "Jinja2": ("commands/test_init.py", "report/page/test_page.py", "report/test_markdown.py"),
    "MarkupSafe": ("report/test_clean.py",),
    "msgspec": (
        *("baselines", "config", "forges/github/test_event.py", "importers/test_recognition.py"),
        "report/test_findings.py",
    ),
    "numpy": ("trend/test_changes.py", "trend/test_timelines.py"),
    "nvidia-ml-py": ("machine/test_gpu_watch.py",),
    "pandas": ("commands/test_library.py",),
    "platformdirs": ("history/test_projects.py",),
    "psutil": ("machine/test_doctor.py", "machine/test_quiet.py"),
    "psycopg": ("history/test_store.py",),
    "requests": ("forges/github/test_posting.py", "forges/github/test_odd_servers.py"),
    "rich": ("report/test_calibration.py", "report/test_terminal.py"),
    "scipy": (
        *("bisect/test_search.py", "stats/test_spread.py"),
        *("stats/test_tests_of_significance.py", "trend/test_noise.py"),
    ),
    "SQLAlchemy": ("history/test_interchange.py", "history/test_opening.py"),
}
"""The tests that call each library, without those that need many processes."""
_DIRECT = "measure/test_own_code.py"
WITH_PYTHON = (
    *("api", "worker/test_imports.py", "worker/test_left_running.py", "worker/test_turns.py"),
    *("worker/test_worker_definitions.py", "worker/test_worker_discovery.py"),
    *("worker/test_worker_failures.py", "worker/test_worker_messages.py"),
    *("worker/test_worker_timing.py", "worker/test_worker_values.py"),
    "worker/test_trees.py::test_a_spawned_process_imports_the_benchmark_file",
)
"""What workers run is of the standard library alone, and differs with Python."""
OF_THE_NEWEST = (
    f"{_DIRECT}::test_children_import_their_sides_code_before_any_import_hook",
    *("cli/test_commands.py", "commands/test_library.py", "config", "history/test_store.py"),
    *("report/test_markdown.py", "stats/test_tests_of_significance.py", "trend/test_timelines.py"),
)
"""Of several Pythons the newest alone has a real comparison, and calls a little of each library."""


def main(names: list[str]) -> int:
    """Run the tests in each environment; return 0 where all passed."""
    return max([tested(name, chosen(name, names)) for name in names], default=0)


def chosen(name: str, names: list[str]) -> list[str]:
    """Return what may end otherwise in an environment than in the others."""
    if name == "lowest":
        return list(dict.fromkeys(path for paths in CALLING.values() for path in paths))
    newest = max(names, key=lambda each: [int(part) for part in each.split(".") if part.isdigit()])
    return [*OF_THE_NEWEST, *WITH_PYTHON] if name == newest else [*WITH_PYTHON]


def tested(name: str, paths: list[str]) -> int:
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
                *(own, "-m", "pytest", "--quiet", "--numprocesses=2", "--dist=loadfile"),
                *("--durations=5", *(str(ROOT / "tests" / path) for path in paths)),
            ],
            cwd=ROOT,
            check=False,
        ).returncode


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
