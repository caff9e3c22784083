"""The builds of sides: their commands, and the Python environments that they install into."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from perfci.errors import MeasureError, OutsideError, PerfciError, UnbuiltCommit, UsageError
from perfci.measure.checkout.disk import disk_error
from perfci.measure.process_cleanup import SESSION_VARIABLE
from perfci.units import first_of, format_duration

ENVIRONMENT_FOLDER = ".perfci-env"
"""The folder of a side's own environment, in its tree. It is kept like all that is built."""
_SITES = (
    "import site; user = site.getusersitepackages(); "
    "print(*[user] * bool(site.ENABLE_USER_SITE), *site.getsitepackages(), sep='\\n')"
)
"""Prints the folders that a Python has its packages in, one a line."""
_HAS_PIP = "import sys, importlib.util as u; sys.exit(not u.find_spec('pip'))"
_INSTALLED = """
import os, sys
from importlib.metadata import distributions
del sys.path[0]  # the current folder
for path in (str(each._path) for each in distributions()):
    print(os.path.basename(path), "at", os.stat(path).st_mtime_ns if os.path.exists(path) else "")
"""
"""Prints the ``Installed`` of a Python."""
_COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "nvcc")
_OF_ONE_SESSION = frozenset({SESSION_VARIABLE})
"""Variables that differ between sessions. No build depends on their values."""
Run = Callable[..., str]
"""Runs a command and returns what it prints."""
Installed = frozenset[str]
"""A line for each distribution that a Python has installed, which another install changes."""
_TAIL_BYTES, _TAIL_LINES = 4000, 30
"""How much of the end of a build's log an error shows."""


@dataclass(frozen=True, slots=True)
class BuildRecipe:
    """A build: its commands, and how to run them. All have ``timeout`` s together.

    Each command is run by ``/bin/sh``, which ``launcher`` starts. ``{python}`` in it stands for
    ``python``, or for the Python of the side's ``own_environment``. A kept build that began before
    ``not_before`` (s since 1970) is made again. ``SideFolders`` adds the
    ``tree``, a ``commit`` with this tree, and the ``submodules`` that the user's clone has.
    """

    build: tuple[str, ...] = ()
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    timeout: float = 1800.0
    own_environment: bool = False
    launcher: tuple[str, ...] = ()
    not_before: float = 0.0
    tree: str = ""
    commit: str = ""
    submodules: tuple[str, ...] = ()


def build_key(recipe: BuildRecipe, installed: Installed) -> str:
    """Return a hash that is equal for builds that are interchangeable.

    It covers the tree, submodules, commands, and all of the environment: variables, the Python with
    what it has ``installed``, and the compilers.
    """
    own = "own environment" if recipe.own_environment else "the environment of both sides"
    parts = [recipe.tree, recipe.python, own, *recipe.build, "\0".join(recipe.launcher)]
    parts += recipe.submodules
    parts += [
        f"{name}={value}"
        for name, value in sorted(recipe.environment.items())
        if name not in _OF_ONE_SESSION
    ]
    parts += [_version(recipe, recipe.python), *_compilers(recipe)]
    parts += sorted(installed)
    text = "\0\0".join(parts)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def _compilers(recipe: BuildRecipe) -> Iterator[str]:
    """Yield the content (of a script, say) and the version of each compiler that a build finds."""
    environment = recipe.environment
    named = (word for name in ("CC", "CXX") for word in shlex.split(environment.get(name, "")))
    for program in dict.fromkeys((*_COMPILERS, *named)):
        if path := shutil.which(program, path=environment.get("PATH")):
            yield hashlib.sha256(Path(path).read_bytes()).hexdigest()
            yield _version(recipe, path)


def _version(recipe: BuildRecipe, *program: str) -> str:
    return _answer(recipe, *program, "--version") or ""


def run_build(recipe: BuildRecipe, folder: Path, log: Path) -> None:
    """Run the commands in ``folder``, their output in ``log``. OutsideError if one fails."""
    python = recipe.python
    if recipe.own_environment:
        recipe, python = _in_own_environment(recipe, folder), python_in(folder)
    deadline = time.monotonic() + recipe.timeout
    with log.open("wb") as output:
        for written in recipe.build:
            command = written.replace("{python}", shlex.quote(python))
            output.write(f"$ {command}\n".encode(errors="surrogateescape"))
            output.flush()
            if trouble := _run(command, recipe, folder, output, deadline):
                raise _failed(command, trouble, log)


def _run(command: str, recipe: BuildRecipe, folder: Path, output: BinaryIO, deadline: float) -> str:
    """Run a command until ``deadline``. Return what went wrong, or an empty text."""
    process = subprocess.Popen(
        [*recipe.launcher, "/bin/sh", "-c", command],
        cwd=folder,
        env=dict(recipe.environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        status = process.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"was not done after {format_duration(recipe.timeout)} and was ended"
    finally:  # also after Ctrl-C, and for processes that a successful command left running
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"ended with exit status {status}" if status else ""


def _failed(command: str, trouble: str, log: Path) -> PerfciError:
    tail = _tail(log)
    message = f"build command `{command}` {trouble}\n{tail}".rstrip()
    full = disk_error("building", tail)
    if full and full.slug == "disk-full":
        return OutsideError(full.slug, message, full.advice)
    return UnbuiltCommit("build-failed", message, f"The whole log: {log}")


def _tail(log: Path) -> str:
    with log.open("rb") as text:
        text.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = text.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-_TAIL_LINES:])


def python_in(tree: Path) -> str:
    """Return the Python of the environment that lies in a built tree."""
    return str(tree / ENVIRONMENT_FOLDER / "bin" / "python")


def lay_over(python: str, place: Path, run: Run, *, pip: bool = False) -> None:
    """Make a virtual environment at ``place`` on top of what ``python`` has installed.

    Its own packages come first. ``pip`` tells whether it gets a pip of its own.
    """
    beneath = run(python, "-c", _SITES).splitlines()
    run(python, "-m", "venv", *([] if pip else ["--without-pip"]), str(place))
    own = Path(run(str(place / "bin" / "python"), "-c", _SITES).splitlines()[-1])
    lines = "\n".join(f"import site; site.addsitedir({folder_below!r})" for folder_below in beneath)
    (own / "perfci-beneath.pth").write_text(f"{lines}\n", encoding="utf-8")


def _in_own_environment(recipe: BuildRecipe, tree: Path) -> BuildRecipe:
    """Make a side's own environment in its ``tree``. Return the recipe with it activated."""
    place = tree / ENVIRONMENT_FOLDER
    run = partial(_printed, recipe)
    has_pip = _answer(recipe, recipe.python, "-c", _HAS_PIP) is not None
    lay_over(recipe.python, place, run, pip=not has_pip)
    (place / ".gitignore").write_text("*\n", encoding="utf-8")
    return replace(recipe, environment=activated(recipe.environment, python_in(tree)))


def activated(environment: Mapping[str, str], python: str) -> dict[str, str]:
    """Return ``environment`` with the virtual environment of ``python`` activated."""
    scripts = Path(python).parent
    path = environment.get("PATH", os.defpath)
    return {
        **environment,
        "PATH": f"{scripts}{os.pathsep}{path}",
        "VIRTUAL_ENV": str(scripts.parent),
    }


def installed_for(recipe: BuildRecipe) -> Installed:
    """Return a line for each distribution that the Python which measures has installed.

    Empty if that Python can't be started here, because it is behind a launcher, say.
    """
    return frozenset((_answer(recipe, recipe.python, "-c", _INSTALLED) or "").splitlines())


def require_unchanged(before: Installed, recipe: BuildRecipe) -> None:
    """Raise UsageError if a build installed into the Python that measures both sides."""
    changed = before ^ installed_for(recipe) if before else before
    if not changed:
        return
    names = first_of(sorted({line.rpartition(" at ")[0] for line in changed}), 3)
    raise UsageError(
        "build-changed-environment",
        f"the build of {recipe.commit[:12]} changed what {recipe.python} has installed: "
        f"{names}. Both sides would run the last build's packages",
        'Set environment = "own" in [tool.perfci]: each side then has an environment of its own, '
        "over this one, and {python} of `build` is its Python. What was installed stays until you "
        "install it again.",
    )


def _answer(recipe: BuildRecipe, *command: str) -> str | None:
    """Return what a command prints, or None if it fails."""
    try:
        return _printed(recipe, *command)
    except MeasureError:
        return None


def _printed(recipe: BuildRecipe, *command: str) -> str:
    """Return what a command prints. MeasureError if it fails."""
    try:
        return subprocess.run(
            command,
            env=dict(recipe.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
            timeout=recipe.timeout,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise MeasureError(
            "environment-not-made",
            f"`{' '.join(command[:3])}` failed: {getattr(error, 'stderr', '') or error}",
            "See that this Python can make a virtual environment: PYTHON -m venv FOLDER.",
        ) from error
