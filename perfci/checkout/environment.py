"""A side's own Python environment, laid over the one that measures; what is installed in one."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from perfci.checkout.build import Recipe
from perfci.checkout.disk import explaining
from perfci.errors import MeasureError, UsageError

FOLDER = ".perfci-env"
"""The environment's folder in the side's tree: kept, given up and checked as all that is built."""
_SITES = (
    "import site; user = site.getusersitepackages(); "
    "print(*[user] * bool(site.ENABLE_USER_SITE), *site.getsitepackages(), sep='\\n')"
)
_HAS_PIP = "import sys, importlib.util as u; sys.exit(u.find_spec('pip') is None)"
_METADATA = re.compile(r"(.+?)(?:-([^-]+))?(?:-py[\d.]+)?\.(?:dist-info|egg-info|egg)$")
Run = Callable[..., str]
"""Runs a command and returns what it prints."""


def python_in(tree: Path) -> str:
    """Return the Python of the environment that lies in a built tree."""
    return str(tree / FOLDER / "bin" / "python")


def lay_over(python: str, place: Path, run: Run, *, pip: bool = False) -> None:
    """Make an environment at ``place`` that sees what ``python`` has, and goes before it.

    ``pip`` is installed in it where asked for.
    """
    beneath = run(python, "-c", _SITES).splitlines()
    run(python, "-m", "venv", *([] if pip else ["--without-pip"]), str(place))
    own = Path(run(str(place / "bin" / "python"), "-c", _SITES).splitlines()[-1])
    lines = "\n".join(f"import site; site.addsitedir({one!r})" for one in beneath)
    (own / "perfci-beneath.pth").write_text(f"{lines}\n", encoding="utf-8")


def in_own_environment(recipe: Recipe, tree: Path) -> Recipe:
    """Make the environment of a side in its ``tree``; return the recipe that builds into it."""
    place = tree / FOLDER
    with explaining(f"making {place}"):
        run = _runner(recipe)
        lay_over(recipe.python, place, run, pip=not _has_pip(recipe))
        (place / ".gitignore").write_text("*\n", encoding="utf-8")
    own = python_in(tree)
    commands = tuple(
        tuple(word.replace("{python}", own) for word in command) for command in recipe.commands
    )
    return replace(recipe, commands=commands, environment=activated(recipe.environment, own))


def activated(environment: Mapping[str, str], python: str) -> dict[str, str]:
    """Return the variables with which ``python``'s environment is the active one."""
    scripts = Path(python).parent
    path = environment.get("PATH", os.defpath)
    return {
        **environment,
        "PATH": f"{scripts}{os.pathsep}{path}",
        "VIRTUAL_ENV": str(scripts.parent),
    }


Installed = Mapping[str, tuple[int, int]]


def installed_for(recipe: Recipe) -> Installed:
    """Return what lies in the folders that the measuring Python has its packages in.

    None where that Python can't be started here, behind a launcher, say.
    """
    try:
        folders = _runner(recipe)(recipe.python, "-c", _SITES).splitlines()
    except MeasureError:
        return {}
    found: dict[str, tuple[int, int]] = {}
    for folder in folders:
        if Path(folder).is_dir():
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name != "__pycache__":
                        found[entry.path] = _stamp(entry)
    return found


def _stamp(entry: os.DirEntry[str]) -> tuple[int, int]:
    """Return what changes with each installation of a distribution."""
    path = Path(entry.path)
    if entry.is_dir():
        files = (path / name for name in ("RECORD", "PKG-INFO"))
        path = next((file for file in files if file.is_file()), path)
        if path == Path(entry.path):  # a package: whoever imports it writes bytecode there
            return 0, 0
    status = path.lstat()
    return status.st_mtime_ns, status.st_size


def require_unchanged(before: Installed, recipe: Recipe) -> None:
    """Raise UsageError where a build installed into the Python that measures both sides."""
    after = installed_for(recipe) if before else {}
    changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    if not changed:
        return
    names = sorted({_distribution(Path(path).name) for path in changed})
    metadata = sorted({_distribution(Path(one).name) for one in changed if _METADATA.match(one)})
    shown = metadata or names
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    raise UsageError(
        "build-changed-environment",
        f"the build of {recipe.commit[:12]} changed what {recipe.python} has installed: "
        f"{', '.join(shown[:3])}{more}. Both sides would run what the last build left there",
        'Set environment = "own" in [tool.perfci]: each side then has an environment of its own, '
        "over this one, and {python} of `build` is its Python. What was installed stays until you "
        "install it again.",
    )


def _distribution(name: str) -> str:
    match = _METADATA.match(name)
    return " ".join(filter(None, match.groups())) if match else name


def _has_pip(recipe: Recipe) -> bool:
    try:
        _runner(recipe)(recipe.python, "-c", _HAS_PIP)
    except MeasureError:
        return False
    return True


def _runner(recipe: Recipe) -> Run:
    def run(*command: str) -> str:
        return _run(recipe, command)

    return run


def _run(recipe: Recipe, command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            [*recipe.enter, *command],
            env=dict(recipe.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=recipe.timeout,
        )
        trouble = done.stderr.strip() if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unmade(command, str(error)) from error
    if done.returncode:
        raise _unmade(command, trouble or f"exit status {done.returncode}")
    return done.stdout


def _unmade(command: Sequence[str], trouble: str) -> MeasureError:
    return MeasureError(
        "environment-not-made",
        f"`{' '.join(command[:3])}` failed: {trouble}",
        "See that this Python can make a virtual environment: PYTHON -m venv --without-pip FOLDER.",
    )
