"""``init``: a first configuration, a first benchmark, and GitHub's workflows."""

from __future__ import annotations

import json
import keyword
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from perfci.commands.first_benchmark import first_benchmark
from perfci.commands.project import interpreter, relative_to_root
from perfci.commands.workflows import (
    CiOptions,
    github_workflows,
    new_file_template,
    require_folder,
)
from perfci.config.loading import OWN_FILE, PROJECT_FILE, Config
from perfci.errors import UsageError
from perfci.files import parse_toml, read_regular
from perfci.measure.checkout.git import Repository
from perfci.measure.machine.pythons import has_module, other_python, project_python
from perfci.outputs import Say
from perfci.units import first_of

_IGNORED = "__pycache__/\n"
"""The content of a first .gitignore."""
_NO_PACKAGES = frozenset(
    {"tests", "test", "testing", "docs", "doc", "examples", "example", "scripts", "benchmarks"}
)
"""Names of folders that are never the package to measure."""
_MOST_FOLDERS = 200
"""Most folders of a repository to look at. A project with more has several packages."""


def initialise(
    repository: Repository,
    benchmarks: str,
    say: Say,
    package: str = "",
    workflows: CiOptions | None = None,
    python: str = "",
    ask: Callable[[str], str] | None = None,
) -> None:
    """Write the files that are missing, and report to ``say`` which were written and which kept.

    UsageError if any of them can't be made. Nothing is written then.

    ``benchmarks`` is the folder of benchmark files, ``package`` the package to measure where there
    are several. GitHub's workflows are written as well if their options, ``workflows``, are given.
    ``python`` is the Python that measures. If no Python with torch is known, ``ask`` asks the user
    for one.
    """
    root = repository.root
    folder = (root / benchmarks).resolve()
    require_folder(root, Path(benchmarks))
    project = _parsed(root / PROJECT_FILE, _text(root / PROJECT_FILE))
    if python and _is_configured(root, project):
        raise UsageError(
            "already-configured",
            "perfci is configured already, and init overwrites nothing: --python has no effect",
            f"Write it yourself: `python = {json.dumps(python, ensure_ascii=False)}`.",
        )
    if python:
        interpreter(relative_to_root(python, root), Config(), root)
    settled = _is_configured(root, project) and any(folder.glob("bench_*.py"))
    measured = None if settled else measured_package(root, project, package)
    if not python:
        quiet = settled or workflows
        python = project_python(root) if quiet else _measuring_python(root, say, ask)
    # with workflows, `python` is left out: their jobs have an environment of their own
    first_table = new_file_template("pyproject.toml.j2").render(
        benchmarks=folder.relative_to(root.resolve()).as_posix(),
        python=json.dumps(python, ensure_ascii=False) if python and not workflows else "",
        python_path=json.dumps(measured.folder, ensure_ascii=False)
        if measured and not measured.reached
        else "",
    )
    files = github_workflows(repository, workflows) if workflows else None
    if files:
        files.require_places(root)
    _configure(root, first_table, say)
    _ignore(root, python, say)
    first = folder / "bench_first.py"
    if any(folder.glob("bench_*.py")):
        say(f"kept     {benchmarks}/ has benchmarks already")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        package_folder = root / measured.folder / measured.name if measured else None
        first.write_text(first_benchmark(package_folder), encoding="utf-8")
        example = "" if measured else ": torch's layers as an example, as no package is here"
        say(f"wrote    {benchmarks}/bench_first.py{example}")
    if files:
        files.write(root, say)


def _measuring_python(root: Path, say: Say, ask: Callable[[str], str] | None) -> str:
    """Return the Python to write into the configuration, or nothing for perfci's own."""
    python = project_python(root)
    seen = str(root / python) if python else sys.executable
    if has_module(seen, "torch"):
        return python
    if not python and (other := other_python("torch", os.environ, root)):
        say(f"found    torch in {other}: it is `python` in the configuration")
        return other
    if ask and (answer := ask(f"{seen} has no torch. Path of a Python that has it (or Enter)")):
        python, seen = answer, interpreter(relative_to_root(answer, root), Config(), root)
        if has_module(seen, "torch"):
            return python
    say(f"no torch in {seen}: set `python` in {PROJECT_FILE} to a Python that has it")
    return python


def _ignore(root: Path, python: str, say: Say) -> None:
    """Write a first .gitignore. Files that aren't ignored are measured with the working tree."""
    path = root / ".gitignore"
    if os.path.lexists(path):
        return
    inside = python and not Path(python).is_absolute()
    environment = f"/{python.partition('/')[0]}/\n" if inside else ""
    path.write_text(_IGNORED + environment, encoding="utf-8")
    say("wrote    .gitignore")


def _configure(root: Path, own_table: str, say: Say) -> None:
    """Write ``own_table`` into pyproject.toml if TOML allows that, else into a new file."""
    path, own = root / PROJECT_FILE, root / OWN_FILE
    text = _text(path)
    if _is_configured(root, _parsed(path, text)):
        say("kept     the configuration that is there")
        return
    both = text + ("\n" if text else "") + own_table
    if "\r\n" in text:
        both = both.replace("\r\n", "\n").replace("\n", "\r\n")
    if not _is_toml(both):  # `tool` is an inline table, which no other table may add to
        own.write_text(own_table, encoding="utf-8")
        say(f"wrote    [tool.perfci] to a new {own.name}")
        return
    path.write_bytes(both.encode("utf-8"))
    say(f"wrote    [tool.perfci] {'in' if text else 'to a new'} {path.name}")


def _is_configured(root: Path, project: Mapping[str, Any]) -> bool:
    tool = project.get("tool", {})
    return (isinstance(tool, dict) and "perfci" in tool) or os.path.lexists(root / OWN_FILE)


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(
            "unreadable-configuration",
            f"{path} can't be read: {reason}",
            "Mend it, then run `perfci init` again.",
        ) from error


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise UsageError(
            "bad-toml", f"{path} can't be read: {error}", "Mend it, then run `perfci init` again."
        ) from error


def _is_toml(text: str) -> bool:
    try:
        parse_toml(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ImportPackage:
    """An importable package: its name, and the folder of the repository that contains it."""

    name: str
    folder: str

    @property
    def reached(self) -> bool:
        """Return whether it can be imported without a `python_path`."""
        return self.folder in {".", "src"}

    @property
    def places(self) -> tuple[str, ...]:
        """Return the names for it in ``--package``: its name, its folder, and its parent folder."""
        inside = PurePosixPath(self.folder) / self.name
        project = self.folder.removesuffix("/src")
        return (self.name, inside.as_posix(), self.folder, project)


def measured_package(
    root: Path, project: Mapping[str, Any], named: str = ""
) -> ImportPackage | None:
    """Return the package to measure, or None. ``project`` is ``root``'s pyproject.toml.

    The package is the one ``named`` by its name or folder. Without that, it is the only one with
    the project's name, else the only one that needs no ``python_path``, else the only one at all.
    Packages lie at the root, in `src`, and in a monorepo in folders with a pyproject.toml or their
    `src`. UsageError, which lists them, where several or none could be meant.
    """
    packages = [
        ImportPackage(name, folder) for folder in _folders(root) for name in _in(root / folder)
    ]
    if named:
        wanted = named.strip("/").removeprefix("./")
        meant = [candidate for candidate in packages if wanted in candidate.places]
        if len(meant) != 1:
            what = "means several packages" if meant else "is no package"
            raise _ambiguous_package(f"--package {named} {what}", meant or packages)
        return meant[0]
    table = project.get("project", {})
    project_name = str(table.get("name", "")) if isinstance(table, dict) else ""
    own = re.sub(r"[-_.]+", "_", project_name).lower()
    same = [candidate for candidate in packages if candidate.name.lower() == own]
    near = [candidate for candidate in packages if candidate.reached]
    for some in (same, near, packages):
        if len(some) == 1:
            return some[0]
    if packages:
        raise _ambiguous_package("this repository has several packages", same or near or packages)
    return None


def _ambiguous_package(what: str, packages: Sequence[ImportPackage]) -> UsageError:
    if not packages:
        advice = "Leave --package out: the first benchmark is of a model of its own then."
        return UsageError("which-package", f"{what}: no package is found here", advice)
    names = [package.name for package in packages]
    shown = first_of([f"{package.name} (in {package.folder})" for package in packages], 10)
    example = packages[0].name if names.count(packages[0].name) == 1 else packages[0].places[-1]
    advice = f"Name the one to measure: `perfci init --package {example}`."
    return UsageError("which-package", f"{what}: there are {shown}", advice)


def _folders(root: Path) -> Iterator[str]:
    """Yield the folders that may hold packages, relative to ``root``."""
    yield from (folder for folder in (".", "src") if (root / folder).is_dir())
    apart = [
        path.parent
        for pattern in ("*/pyproject.toml", "*/*/pyproject.toml")
        for path in sorted(root.glob(pattern))[:_MOST_FOLDERS]
    ]
    for folder in (part for project in apart for part in (project, project / "src")):
        inside = PurePosixPath(folder.relative_to(root))
        if folder.is_dir() and not any(part.startswith(".") for part in inside.parts):
            yield inside.as_posix()


def _in(folder: Path) -> Iterator[str]:
    """Yield the names of the packages in ``folder``."""
    for entry in _entries(folder):
        usable = entry.name.isidentifier() and not keyword.iskeyword(entry.name)
        if usable and entry.name not in _NO_PACKAGES and (entry / "__init__.py").is_file():
            yield entry.name


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
