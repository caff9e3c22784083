"""Advice on the configuration, so that a side's own code is what runs. Reads its tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from perfci.files import parse_toml
from perfci.worker.own_packages import NO_LIBRARY, packages_in, project_folders

_SCRIPT = "{python} setup.py build_ext --inplace"
_BACKENDS = ("scikit_build_core", "mesonpy", "maturin", "hatchling", "setuptools", "poetry", "flit")
_TARGET = ".perfci-build"
_INSTALL = "{python} -m pip install --no-deps --no-build-isolation --target " + _TARGET
_USUAL = frozenset({".", "src"})
"""The default of ``python_path``: named where the tree has something there."""
_NO_MODULES = frozenset({"setup.py", "conftest.py", "noxfile.py"})


def build_advice(tree: Path, python_path: Sequence[str] = ()) -> str:
    """Return the ``build`` key for a project whose compiled files its tree lacks."""
    if not any(map(_is_buildable, _project_folders(tree))):
        return "Set `build` in [tool.perfci] to the commands that compile it."
    return _set(tree, (), python_path, build=True)


def path_advice(
    tree: Path, file: str, module: str, python_path: Sequence[str], *, built: bool = False
) -> str:
    """Return the ``python_path`` with which ``file`` (relative to ``tree``) is found; or nothing.

    ``module`` is its dotted name where that is known. Where nothing was ``built`` and something has
    to be, the build comes with it: else it would be what is missing next.
    """
    folder = folder_of(tree, file, module)
    if folder in python_path:
        return ""
    return _set(tree, (folder,), python_path, build=not built and _compiles_any(tree))


def missing_advice(
    tree: Path, names: Sequence[str], python_path: Sequence[str], *, built: bool
) -> str:
    """Return what to set for modules that were imported and not found; or nothing.

    Those of a package that was found have to be compiled, where the project compiles anything.
    """
    tops = dict.fromkeys(name for name in names if "." not in name)
    advice = (package_advice(tree, name, python_path, built=built) for name in tops)
    if result := next(filter(None, advice), ""):
        return result
    inner = any("." in name for name in names)
    return build_advice(tree, python_path) if inner and not built and _compiles_any(tree) else ""


def package_advice(
    tree: Path, package: str, python_path: Sequence[str], *, built: bool = False
) -> str:
    """Return the ``python_path`` with which the tree's ``package`` is found; or nothing."""
    folder = packages_in(str(tree)).get(package)
    if folder is None or folder in python_path:
        return ""
    return _set(tree, (folder,), python_path, build=not built and _compiles_any(tree))


def folder_of(tree: Path, file: str, module: str) -> str:
    """Return the folder, relative to ``tree``, from which ``file`` is imported."""
    path = Path(file)
    if module and module != "__main__":
        inner = path.parent if path.name.startswith("__init__.") else path
        parts = module.split(".")
        names = [*inner.parts[:-1], inner.name.partition(".")[0]]
        if names[-len(parts) :] == parts:
            return str(Path(*names[: -len(parts)]))
    folder = path.parent
    while (tree / folder / "__init__.py").is_file() and folder != Path():
        folder = folder.parent
    return str(folder)


def _set(tree: Path, folders: Sequence[str], python_path: Sequence[str], *, build: bool) -> str:
    """Return the advice: ``folders`` and, in a monorepo, those of its other distributions.

    One alone would only lead to the next: what is imported first imports the others.
    """
    kept = [entry for entry in python_path if entry not in _USUAL or _has_modules(tree / entry)]
    sources = _sources(tree)
    more = [*folders, *(sources if {*kept, *folders} & {*sources} else ())]
    settings = []
    if build:
        commands = [_build_command(tree, folder) for folder in _project_folders(tree)]
        settings.append(f"build = [{', '.join(map(_quoted, commands))}]")
        if any(_TARGET in command for command in commands):
            kept.insert(0, _TARGET)
    if {*kept, *more} - {*python_path}:
        named = dict.fromkeys([*kept, *more])
        settings.append(f"python_path = [{', '.join(map(_quoted, named))}]")
    return f"Set {' and '.join(settings)} in [tool.perfci]."


def _has_modules(folder: Path) -> bool:
    """Return whether something of a project's is imported from ``folder``."""
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return bool(packages - NO_LIBRARY or {path.name for path in folder.glob("*.py")} - _NO_MODULES)


def _is_buildable(folder: Path) -> bool:
    return (folder / "setup.py").is_file() or _backend(folder) != ""


def _build_command(tree: Path, folder: Path) -> str:
    below = "" if folder == tree else str(folder.relative_to(tree))
    if (folder / "setup.py").is_file() and _backend(folder) in {"", "setuptools"}:
        return f"bash -c 'cd {below} && {_SCRIPT}'" if below else _SCRIPT
    return f"{_INSTALL} ./{below}" if below else f"{_INSTALL} ."


def _sources(tree: Path) -> tuple[str, ...]:
    """Return the folders that the distributions of ``tree`` have their packages in."""
    return tuple(
        str(folder.relative_to(tree))
        for folder, packages in project_folders(str(tree))
        if str(folder.relative_to(tree)) not in _USUAL
        and set(packages) - NO_LIBRARY
        and any(
            (place / name).is_file()
            for place in (folder, folder.parent)
            for name in ("pyproject.toml", "setup.py", "setup.cfg")
        )
    )


def _quoted(command: str) -> str:
    return f'"{command}"'


def _project_folders(tree: Path) -> tuple[Path, ...]:
    """Return the folders of what is built: the tree's root, or the projects below it that compile.

    The first of these, where none is known to.
    """
    names = ("pyproject.toml", "setup.py")
    inner = sorted(
        folder
        for depth in ("*", "*/*")
        for folder in tree.glob(depth)
        if not any(part.startswith(".") for part in folder.relative_to(tree).parts)
        and any((folder / name).is_file() for name in names)
    )
    at_root = (tree / "setup.py").is_file() or _backend(tree)
    if at_root or not inner:
        return (tree,)
    return tuple(folder for folder in inner if _compiles(folder)) or (inner[0],)


def _compiles_any(tree: Path) -> bool:
    return any(_compiles(folder) for folder in _project_folders(tree))


def _compiles(folder: Path) -> bool:
    """Return whether the project in ``folder`` has something to compile."""
    others = any((folder / name).is_file() for name in ("CMakeLists.txt", "Cargo.toml"))
    meson = folder / "meson.build"
    return (
        others
        or _has_extensions(folder / "setup.py")
        or (meson.is_file() and "extension_module" in meson.read_text("utf-8", "replace"))
    )


def _has_extensions(script: Path) -> bool:
    if not script.is_file():
        return False
    return re.search(r"ext_modules|Extension\(", script.read_text("utf-8", "replace")) is not None


def _backend(folder: Path) -> str:
    """Return the build backend's name; empty where none is named."""
    file = folder / "pyproject.toml"
    if not file.is_file():
        return ""
    try:
        system = parse_toml(file.read_text("utf-8", "replace")).get("build-system", {})
    except ValueError:  # of another commit, and no configuration of perfci's
        return ""
    named = str(system.get("build-backend", "")) if isinstance(system, dict) else ""
    return next((backend for backend in _BACKENDS if named.startswith(backend)), named)
