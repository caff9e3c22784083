"""``init``: a first configuration, a first benchmark, and GitHub's workflows."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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
from perfci.outputs import Say
from perfci.units import first_of

_IGNORED = "__pycache__/\n"
"""The content of a first .gitignore."""
_ENVIRONMENTS = (".venv", "venv")
"""Usual folders of a project's virtual environment."""
_NO_PACKAGES = frozenset(
    {"tests", "test", "testing", "docs", "doc", "examples", "example", "scripts", "benchmarks"}
)
"""Names of folders that are never the package to measure."""
_MODULES = {"nn.Module", "torch.nn.Module", "Module"}
"""Base classes of a torch module, as source code writes them."""
_MOST_MODELS = 5
"""Models that the first benchmark names."""


def initialise(
    repository: Repository,
    benchmarks: str,
    say: Say,
    package: str = "",
    workflows: CiOptions | None = None,
    python: str = "",
) -> None:
    """Write the files that are missing, and report to ``say`` which were written and which kept.

    UsageError if any of them can't be made. Nothing is written then.

    ``benchmarks`` is the folder of benchmark files, ``package`` the folder of the package to
    measure. GitHub's workflows are written as well if their options, ``workflows``, are given.
    ``python`` is the Python that measures.
    """
    root = repository.root
    folder = (root / benchmarks).resolve()
    require_folder(root, Path(benchmarks))
    text = _text(root / PROJECT_FILE)
    project = _parsed(root / PROJECT_FILE, text)
    tool = project.get("tool", {})
    configured = os.path.lexists(root / OWN_FILE) or (isinstance(tool, dict) and "perfci" in tool)
    python = _measuring_python(root, python, configured=configured)
    has_benchmarks = any(folder.glob("bench_*.py"))
    measured = None if has_benchmarks else measured_package(root, project, package)
    place = measured.parent.relative_to(root).as_posix() if measured else "."
    # with workflows, `python` is left out: their jobs have an environment of their own
    table = new_file_template("pyproject.toml.j2").render(
        benchmarks=folder.relative_to(root.resolve()).as_posix(),
        python=json.dumps(python, ensure_ascii=False) if python and not workflows else "",
        python_path="" if place in {".", "src"} else json.dumps(place, ensure_ascii=False),
    )
    files = github_workflows(repository, workflows) if workflows else None
    if files:
        files.require_places(root)
    if configured:
        say("kept     the configuration that is there")
    else:
        say(f"wrote    [tool.perfci] in {_configure(root, text, table)}")
    if not os.path.lexists(root / ".gitignore"):  # what isn't ignored is measured with the tree
        environments = "".join(f"/{name}/\n" for name in _ENVIRONMENTS)
        (root / ".gitignore").write_text(_IGNORED + environments, encoding="utf-8")
        say("wrote    .gitignore")
    if has_benchmarks:
        say(f"kept     {benchmarks}/ has benchmarks already")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bench_first.py").write_text(first_benchmark(measured), encoding="utf-8")
        say(f"wrote    {benchmarks}/bench_first.py")
    if files:
        files.write(root, say)


def _measuring_python(root: Path, given: str, *, configured: bool) -> str:
    """Return the Python ``given``, else that of the project's environment, "" if perfci's own."""
    if given and configured:
        raise UsageError(
            "already-configured",
            "perfci is configured already, and init overwrites nothing: --python has no effect",
            f"Write it yourself: `python = {json.dumps(given, ensure_ascii=False)}`.",
        )
    if given:
        interpreter(relative_to_root(given, root), Config(), root)
        return given
    for name in _ENVIRONMENTS:
        if os.access(root / name / "bin/python", os.X_OK) and root / name != Path(sys.prefix):
            return f"{name}/bin/python"
    return ""


def _configure(root: Path, text: str, table: str) -> str:
    """Write ``table`` into pyproject.toml if TOML allows that, else into a new file; its name."""
    both = text + ("\n" if text else "") + table
    if "\r\n" in text:
        both = both.replace("\r\n", "\n").replace("\n", "\r\n")
    try:
        parse_toml(both)
    except ValueError:  # `tool` is an inline table, which no other table may add to
        (root / OWN_FILE).write_text(table, encoding="utf-8")
        return OWN_FILE
    (root / PROJECT_FILE).write_bytes(both.encode("utf-8"))
    return PROJECT_FILE


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


def measured_package(root: Path, project: Mapping[str, Any], named: str = "") -> Path | None:
    """Return the folder of the package to measure, or None. ``project`` is a pyproject.toml.

    It is ``named``, or has the project's name, or is the only one at the root and in `src`.
    UsageError, which lists them, if several could be meant.
    """
    if named:
        folder = (root / named).resolve()
        if (folder / "__init__.py").is_file() and folder.is_relative_to(root.resolve()):
            return root / folder.relative_to(root.resolve())
        raise UsageError(
            "which-package",
            f"--package {named} has no __init__.py",
            "Give the package's folder, such as libs/core/src/core.",
        )
    packages = list(_packages(root)) + list(_packages(root / "src"))
    table = project.get("project", {})
    project_name = str(table.get("name", "")) if isinstance(table, dict) else ""
    own = re.sub(r"[-_.]+", "_", project_name).lower()
    meant = [folder for folder in packages if folder.name.lower() == own] or packages
    if len(meant) > 1:
        names = [str(folder.relative_to(root)) for folder in meant]
        raise UsageError(
            "which-package",
            f"this repository has several packages: {first_of(names, 10)}",
            f"Name the one to measure: `perfci init --package {names[0]}`.",
        )
    return meant[0] if meant else None


def _packages(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        usable = entry.name.isidentifier() and entry.name not in _NO_PACKAGES
        if usable and (entry / "__init__.py").is_file():
            yield entry


def first_benchmark(package: Path | None) -> str:
    """Return the text of a benchmark that imports ``package``, and names its models.

    Without a package, it has a small model of its own.
    """
    if package is None:
        return new_file_template("bench_model.py.j2").render()
    return new_file_template("bench_package.py.j2").render(
        package=package.name, models=list(_models(package))[:_MOST_MODELS]
    )


def _models(package: Path) -> Iterator[str]:
    """Yield the dotted names of the package's torch modules. Nothing of it is imported."""
    for path in sorted(package.rglob("*.py"), key=lambda path: (len(path.parts), path)):
        try:
            body = ast.parse(path.read_bytes()).body
        except (SyntaxError, ValueError):  # another Python's syntax, or none
            continue
        inside = path.relative_to(package.parent).with_suffix("").parts
        dotted = ".".join(part for part in inside if part != "__init__")
        for node in body:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if _MODULES & {ast.unparse(base) for base in node.bases}:
                yield f"{dotted}.{node.name}"
