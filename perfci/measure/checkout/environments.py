"""Python environments of a side, and of the releases of a package."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfci.errors import (
    MeasureError,
    OutsideError,
    PerfciError,
    ReleaseNotInstalled,
    UsageError,
)
from perfci.measure.checkout.build import BuildRecipe
from perfci.measure.checkout.disk import disk_error, explaining, take
from perfci.units import format_duration

FOLDER = ".perfci-env"
"""The environment's folder in the side's tree: kept, given up and checked as all that is built."""
_SITES = (
    "import site; user = site.getusersitepackages(); "
    "print(*[user] * bool(site.ENABLE_USER_SITE), *site.getsitepackages(), sep='\\n')"
)
_HAS_PIP = "import sys, importlib.util as u; sys.exit(u.find_spec('pip') is None)"
_METADATA = re.compile(r"(.+?)(?:-([^-]+))?(?:-py[\d.]+)?\.(?:dist-info|egg-info|egg)$")
_LISTED = "Available versions:"
_TIMEOUT_S = 1800.0
_WHEELS = ("--only-binary", ":all:")
"""Installing a wheel runs none of its code."""


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
    lines = "\n".join(f"import site; site.addsitedir({folder_below!r})" for folder_below in beneath)
    (own / "perfci-beneath.pth").write_text(f"{lines}\n", encoding="utf-8")


def in_own_environment(recipe: BuildRecipe, tree: Path) -> BuildRecipe:
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


def installed_for(recipe: BuildRecipe) -> Installed:
    """Return what lies in the folders that the measuring Python has its packages in.

    None where that Python can't be started here, behind a launcher, say.
    """
    try:
        folders = _runner(recipe)(recipe.python, "-c", _SITES).splitlines()
    except MeasureError:
        return {}
    numbers: dict[str, tuple[int, int]] = {}
    for folder in folders:
        if Path(folder).is_dir():
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name != "__pycache__":
                        numbers[entry.path] = _stamp(entry)
    return numbers


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


def require_unchanged(before: Installed, recipe: BuildRecipe) -> None:
    """Raise UsageError where a build installed into the Python that measures both sides."""
    after = installed_for(recipe) if before else {}
    changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    if not changed:
        return
    names = sorted({_distribution(Path(path).name) for path in changed})
    metadata = sorted(
        {_distribution(Path(entry).name) for entry in changed if _METADATA.match(entry)}
    )
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


def _has_pip(recipe: BuildRecipe) -> bool:
    try:
        _runner(recipe)(recipe.python, "-c", _HAS_PIP)
    except MeasureError:
        return False
    return True


def _runner(recipe: BuildRecipe) -> Run:
    def run(*command: str) -> str:
        return _run(recipe, command)

    return run


def _run(recipe: BuildRecipe, command: Sequence[str]) -> str:
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


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases of ``package`` for ``python``, from the index that pip's settings name.

    Each has an environment below ``folder``, laid over the one that ``python`` has: what the
    release asks for and that one doesn't have is installed with it. ``environment`` are the
    variables that pip gets.
    """

    package: str
    python: str
    folder: Path
    environment: Mapping[str, str] = field(repr=False)

    def versions(self) -> tuple[str, ...]:
        """Return those with a wheel for this Python and machine, the oldest first."""
        printed = self._pip("index", "versions", *_WHEELS, self.package)
        lines = (line for line in printed.splitlines() if line.startswith(_LISTED))
        listed = next(lines, _LISTED)[len(_LISTED) :].split(",")
        return tuple(version.strip() for version in reversed(listed) if version.strip())

    def python_of(self, version: str) -> str:
        """Return the Python of the environment that has ``version``, made if it isn't there."""
        identity = f"{self.python}\0{self.package}\0{version}".encode(errors="surrogateescape")
        place = self.folder / hashlib.sha256(identity).hexdigest()[:16]
        done = place / "installed"
        with explaining(f"making {place}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            with take(place.with_suffix(".lock")):
                if not done.exists():
                    shutil.rmtree(place, ignore_errors=True)
                    self._install(version, place)
                    done.write_text(version, encoding="utf-8")
        return str(place / "bin" / "python")

    def _install(self, version: str, place: Path) -> None:
        lay_over(self.python, place, self._run)
        python = str(place / "bin" / "python")
        arguments = ("install", "--no-input", *_WHEELS, f"{self.package}=={version}")
        self._pip("--python", python, *arguments)

    def _pip(self, *arguments: str) -> str:
        quiet = ("--disable-pip-version-check", "--no-color")
        return self._run(self.python, "-m", "pip", *quiet, *arguments)

    def _run(self, *command: str) -> str:
        """Return what a command prints. MeasureError where it fails."""
        try:
            done = subprocess.run(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise OutsideError(
                "index-too-slow",
                f"pip was not done with {self.package} after {format_duration(_TIMEOUT_S)}",
                "Check that the index can be reached.",
            ) from error
        if done.returncode:
            raise self._failed(done.stderr)
        return done.stdout

    def _failed(self, text: str) -> PerfciError:
        full = disk_error("installing", text)
        if full and full.slug == "disk-full":
            return full
        lines = text.strip().splitlines() or ["no reason given"]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines
        return ReleaseNotInstalled(
            "release-not-installed",
            f"{self.package} can't be installed: {errors[-1].removeprefix('ERROR:').strip()}",
            "pip takes its index from its own settings: PIP_INDEX_URL, PIP_FIND_LINKS, pip.conf.",
        )
