"""``init``: a first configuration, a first benchmark, and GitHub's workflows."""

from __future__ import annotations

import ast
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import Any

from perfci.commands.project import interpreter
from perfci.commands.workflows import (
    CiOptions,
    github_workflows,
    imports_torch,
    new_file_template,
    require_folder,
    write_new,
)
from perfci.config.keys import ProjectKeys
from perfci.config.loading import (
    OWN_FILE,
    PROJECT_FILE,
    Config,
    configures,
    load_config,
    own_table,
    parse_configuration,
    read_configuration,
)
from perfci.errors import UsageError
from perfci.files import expanded, parse_toml
from perfci.measure.checkout.git import Repository, attempt
from perfci.outputs import Say
from perfci.suites import has_own_files
from perfci.suites.pytest import place_of
from perfci.units import first_of

_IGNORED = "__pycache__/\n/.venv/\n/venv/\n"
"""The content of a first .gitignore."""
_ENVIRONMENTS = (".venv", "venv")
"""Usual folders of a project's virtual environment."""
_NO_PACKAGES = frozenset(
    {"tests", "test", "testing", "docs", "doc", "examples", "example", "scripts", "benchmarks"}
)
"""Names of folders that are never the package to measure."""
_MODULES = {"Module", "Sequential", "LightningModule", "PreTrainedModel"}
"""Base classes of models."""
_INIT = "__init__.py"
_PLACE = ("benchmarks", "pattern")
"""The keys of the benchmarks' place."""
_MOST_MODELS = 5
"""Models that the first benchmark names."""


def initialise(
    repository: Repository,
    say: Say,
    *,
    benchmarks: str = "benchmarks",
    package: str = "",
    workflows: CiOptions | None = None,
    python: str = "",
    strict: bool | None = None,
    ask_strict: Callable[[], bool] = bool,
) -> None:
    """Write what is missing, also the workflows if their options are given, and ``say`` so.

    UsageError if any of them can't be made. Nothing is written then. ``python`` measures.
    ``ask_strict`` is called if ``strict`` is open.
    """
    root = repository.root
    require_folder(root, Path(benchmarks))
    names = [name for name in (OWN_FILE, PROJECT_FILE) if os.path.lexists(root / name)]
    texts = {name: read_configuration(root / name) for name in names}
    project = parse_configuration(texts.get(PROJECT_FILE, ""), PROJECT_FILE)
    configured = [name for name in names if configures(root / name)]
    # never a new pyproject.toml: with one, pip builds in isolation, where torch is missing
    file = (configured or names[-1:] or [OWN_FILE])[0]
    known = own_table(parse_configuration(texts[file], file), file)[0] if configured else {}
    place, has_benchmarks = _place(root, benchmarks)
    given = benchmarks != ProjectKeys().benchmarks or known.keys() & _PLACE
    if elsewhere := None if has_benchmarks or given else _suite_elsewhere(root):
        place, has_benchmarks = elsewhere, True
    measured = None if has_benchmarks else measured_package(root, project, package)
    keys = dict[str, Any](zip(_PLACE, place, strict=True)) if elsewhere else {}
    if python or not (configured or workflows):  # workflows' jobs have environments of their own
        keys["python"] = _measuring_python(root, python)
    if strict is not None or (workflows and "strict" not in known):
        keys["strict"] = ask_strict() if strict is None else strict
    if configured:
        text = _completed(file, texts[file], keys)
        verb = "kept " if text == texts[file] else "wrote"
        notice = f"{verb}    {', '.join(keys) or 'all'} in {file}"
    else:
        table = _new_table(place, measured.parent.relative_to(root) if measured else Path(), keys)
        file, text = _with_table(file, texts.get(file, ""), table)
        notice = f"wrote    [tool.perfci] in {file}"
    files = github_workflows(repository, workflows) if workflows else {}
    (root / file).write_bytes(text.encode("utf-8"))
    for line in (notice, *_notes(file, {**known, **keys} if workflows else keys)):
        say(line)
    benchmark = None if has_benchmarks else first_benchmark(measured, root)
    _write_first_files(root, place, benchmark, say)
    write_new(root, files, say)


def _new_table(place: tuple[str, str], package: Path, keys: Mapping[str, Any]) -> str:
    """Return a first [tool.perfci], for a package in the folder ``package``."""
    values = {"python": "", "strict": None, **keys}
    values |= zip(_PLACE, place, strict=True)
    return new_file_template("pyproject.toml.j2").render(place=package.as_posix(), **values)


def _write_first_files(root: Path, place: tuple[str, str], benchmark: str | None, say: Say) -> None:
    """Write a .gitignore if there is none, and the first ``benchmark``, unless there are some."""
    if not os.path.lexists(root / ".gitignore"):  # what isn't ignored is measured with the tree
        (root / ".gitignore").write_text(_IGNORED, encoding="utf-8")
        say("wrote    .gitignore")
    if benchmark is None:
        say(f"found    {place[0]}/: its {place[1]} files are measured as they are")
        return
    first = root / place[0] / "bench_first.py"
    first.parent.mkdir(parents=True, exist_ok=True)
    first.write_text(benchmark, encoding="utf-8")
    say(f"wrote    {place[0]}/bench_first.py")


def _place(root: Path, benchmarks: str) -> tuple[tuple[str, str], bool]:
    """Return the folder of benchmarks and their files' pattern, and whether there are any.

    These are a suite's where the configuration names one, or one is in a usual place. A folder
    ``benchmarks`` that isn't the default is meant for perfci's own files.
    """
    usual = ProjectKeys()
    folder = (root / benchmarks).resolve().relative_to(root.resolve()).as_posix()
    config = load_config(root) if folder == usual.benchmarks else usual
    place = config.benchmarks, config.pattern
    if place != (usual.benchmarks, usual.pattern) and any((root / place[0]).rglob(place[1])):
        return place, True
    return (folder, usual.pattern), has_own_files(root, folder, usual.pattern)


def _suite_elsewhere(root: Path) -> tuple[str, str] | None:
    """Return the folder and the pattern of tests that call pytest-benchmark's fixture, or None."""
    asks, calls = r"def \w+\([^)]*\bbenchmark\b", r"\bbenchmark(\.pedantic)?\("
    files = attempt(
        root, *("grep", "-lzE", "--untracked", "--all-match", "-e", asks, "-e", calls, "--", "*.py")
    )
    names = [name for name in files.output.split("\0") if name]
    tests = [root / name for name in names if Path(name).name != "conftest.py"]
    return place_of(tests, root) if tests else None


def _notes(file: str, keys: Mapping[str, Any]) -> Iterator[str]:
    if expanded(keys.get("python", "")).is_absolute():
        yield f"note     `python` is a path of this machine: another clone of {file} needs its own"
    if "strict" in keys:
        effect = "fails the check" if keys["strict"] else "doesn't fail the check"
        yield f"note     an inconclusive verdict {effect}: `strict` in {file}"


def _measuring_python(root: Path, given: str) -> str:
    """Return the Python given, else that of the project's environment, "" if perfci's own.

    UsageError if the project needs torch, and no Python has it.
    """
    if given:
        path = Path(interpreter(Config(python=given), root))
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else given
    folders = [root / name for name in _ENVIRONMENTS]
    folders += [Path(os.environ.get(name) or root) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    torch = imports_torch(root)
    for folder in folders:
        python = folder / "bin/python"
        if python.is_relative_to(root) and str(folder) != sys.prefix and _runs(python, torch=torch):
            return python.relative_to(root).as_posix()
    if not torch or _runs(Path(sys.executable), torch=True):
        return ""
    others = [*(folder / "bin/python" for folder in folders), Path(which("python3") or "python3")]
    known = next((python for python in others if _runs(python, torch=True)), "PATH")
    raise UsageError(
        "which-python",
        "the project uses torch, which neither .venv nor perfci's own Python has",
        f"Name the Python that measures: perfci init --python {known}",
    )


def _runs(python: Path, *, torch: bool) -> bool:
    """Return whether there is this Python, and it has torch if that is needed."""
    if not os.access(python, os.X_OK):
        return False
    probe = "import importlib.util as u, sys; sys.exit(not u.find_spec('torch'))"
    return not torch or subprocess.run([python, "-c", probe], check=False).returncode == 0


def _completed(file: str, text: str, keys: Mapping[str, Any]) -> str:
    """Return the configuration's text with those ``keys`` that it lacks.

    UsageError if it has one of them with another value, or can't be added to.
    """
    table, name = own_table(parse_configuration(text, file), file)
    wanted = {key: f"{key} = {json.dumps(value)}" for key, value in keys.items()}
    if lines := [f"{line}\n" for key, line in wanted.items() if key not in table]:
        parts = re.split(r"(?m)(^\[tool\.perfci\].*\n)", text, maxsplit=1)
        if name and len(parts) == 1:
            parts = [f"{text}\n[tool.perfci]\n", ""]
        text = "".join([*parts[:-1], *lines, parts[-1]])
    try:
        if own_table(parse_toml(text), file)[0].items() >= keys.items():
            return text
    except ValueError:  # a table that no other may add to
        pass
    raise UsageError(
        "already-configured",
        f"{file} configures perfci already, and init overwrites nothing",
        f"Change it yourself: {', '.join(f'`{line}`' for line in wanted.values())}.",
    )


def _with_table(file: str, text: str, table: str) -> tuple[str, str]:
    """Return the file that takes ``table``, and its new text: ``file``, or if it can't, our own."""
    both = text + ("\n" if text else "") + table
    try:
        parse_toml(both)
    except ValueError:  # `tool` is an inline table, which no other table may add to
        return OWN_FILE, table
    return file, both


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
            f"--package {named} lacks an __init__.py",
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


def first_benchmark(package: Path | None, root: Path) -> str:
    """Return the text of a benchmark that imports ``package``, and names its models.

    Without a package, it has a small model of its own.
    """
    if package is None:
        return new_file_template("bench_model.py.j2").render()
    readme = next(iter(sorted([*package.glob("README*"), *root.glob("README*")])), None)
    shown = readme.read_text(encoding="utf-8", errors="replace") if readme else ""
    return new_file_template("bench_package.py.j2").render(
        package=package.name, models=_models(package, shown)[:_MOST_MODELS]
    )


def _models(package: Path, readme: str) -> list[str]:
    """Return calls of the package's torch modules, first those that its users are shown first.

    That is in the README, then in the package's own imports. Nothing of it is imported.
    """
    classes: dict[str, tuple[str, ast.ClassDef]] = {}
    offered = ""
    for path in sorted(
        package.rglob("*.py"), key=lambda path: (len(path.parts), path.name != _INIT, path)
    ):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # another Python's syntax, or none
            continue
        inside = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(part for part in inside if part != "__init__")
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, (module, node))
        if path == package / _INIT:
            imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.ImportFrom)]
            offered = "\n".join([*imports, *classes])
    found = []
    for name, (module, node) in classes.items():
        if name.startswith("_") or not _is_model(name, classes):
            continue
        file = module.rpartition(".")[2]
        example = re.search(rf"\b{name}\(", readme)
        export = re.search(rf"\b{name}\b|\b{file} import \*", offered)
        place = (example.start() if example else math.inf, export.start() if export else math.inf)
        sizes = ", ".join(f"{argument}=..." for argument in _required(node))
        found.append((place, f"{package.name if export else module}.{name}({sizes})"))
    return [call for _, call in sorted(found, key=lambda model: model[0])]


def _is_model(name: str, classes: Mapping[str, tuple[str, ast.ClassDef]], depth: int = 9) -> bool:
    """Return whether a class derives from torch's, directly or by others of the package."""
    above = classes[name][1].bases if name in classes else []
    bases = {ast.unparse(base).rpartition(".")[2] for base in above}
    return bool(_MODULES & bases) or (
        depth > 0 and any(_is_model(base, classes, depth - 1) for base in bases)
    )


def _required(node: ast.ClassDef) -> Iterator[str]:
    """Yield the arguments that making an object needs, as far as its class shows them."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            arguments = method.args
            given = [*arguments.posonlyargs, *arguments.args]
            yield from (each.arg for each in given[1 : len(given) - len(arguments.defaults)])
            named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            yield from (each.arg for each, default in named if default is None)
