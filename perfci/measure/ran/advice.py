"""What to put into the configuration, so that a side's own code is what runs. Reads its tree."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from perfci.worker.own_packages import packages_in

_SCRIPT = "{python} setup.py build_ext --inplace"
_BACKENDS = ("scikit_build_core", "mesonpy", "maturin", "hatchling", "setuptools", "poetry", "flit")
_TARGET = ".perfci-build"
_INSTALL = "{python} -m pip install --no-deps --no-build-isolation --target " + _TARGET
_USUAL = frozenset({".", "src"})
"""The default of ``python_path``, and never the advice."""


def build_advice(tree: Path) -> str:
    """Return the ``build`` key for a project whose compiled files its tree lacks."""
    folder = _project_folder(tree)
    below = "" if folder == tree else f"{folder.relative_to(tree)}"
    backend = _backend(folder)
    if not (backend or (folder / "setup.py").is_file()):
        return "Set `build` in [tool.perfci] to the commands that compile it."
    if (folder / "setup.py").is_file() and backend in {"", "setuptools"}:
        command = f"bash -c 'cd {below} && {_SCRIPT}'" if below else _SCRIPT
        return f"Set build = [{_quoted(command)}] in [tool.perfci]."
    command = f"{_INSTALL} ./{below}" if below else f"{_INSTALL} ."
    return f'Set build = ["{command}"] and python_path = ["{_TARGET}"] in [tool.perfci].'


def path_advice(tree: Path, file: str, module: str, python_path: Sequence[str]) -> str:
    """Return the ``python_path`` with which ``file`` (relative to ``tree``) is found; or nothing.

    ``module`` is its dotted name where that is known.
    """
    folder = folder_of(tree, file, module)
    if folder in python_path or folder in _USUAL:
        return ""
    return _path_key(folder, python_path)


def package_advice(tree: Path, package: str, python_path: Sequence[str]) -> str:
    """Return the ``python_path`` with which the tree's ``package`` is found; or nothing."""
    folder = packages_in(str(tree)).get(package)
    if folder is None or folder in python_path or folder in _USUAL:
        return ""
    return _path_key(folder, python_path)


def folder_of(tree: Path, file: str, module: str) -> str:
    """Return the folder, relative to ``tree``, from which ``file`` is imported."""
    path = Path(file)
    if module:
        inner = path.parent if path.name.startswith("__init__.") else path
        parts = module.split(".")
        names = [*inner.parts[:-1], inner.name.partition(".")[0]]
        if names[-len(parts) :] == parts:
            return str(Path(*names[: -len(parts)]))
    folder = path.parent
    while (tree / folder / "__init__.py").is_file() and folder != Path():
        folder = folder.parent
    return str(folder)


def _path_key(folder: str, python_path: Sequence[str]) -> str:
    kept = [one for one in python_path if one not in _USUAL]
    named = ", ".join(f'"{one}"' for one in (*kept, folder))
    return f"Set python_path = [{named}] in [tool.perfci]."


def _quoted(command: str) -> str:
    return f'"{command}"'


def _project_folder(tree: Path) -> Path:
    """Return the folder of what is built: the tree's root, or the only project below it."""
    names = ("pyproject.toml", "setup.py")
    inner = sorted(
        folder
        for depth in ("*", "*/*")
        for folder in tree.glob(depth)
        if not any(part.startswith(".") for part in folder.relative_to(tree).parts)
        and any((folder / name).is_file() for name in names)
    )
    compiling = [folder for folder in inner if _has_extensions(folder / "setup.py")]
    at_root = (tree / "setup.py").is_file() or _backend(tree)
    if at_root or not inner:
        return tree
    return (compiling or inner)[0]


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
        system = tomllib.loads(file.read_text("utf-8", "replace")).get("build-system", {})
    except tomllib.TOMLDecodeError:  # of another commit, and nobody's configuration
        return ""
    named = str(system.get("build-backend", "")) if isinstance(system, dict) else ""
    return next((one for one in _BACKENDS if named.startswith(one)), named)
