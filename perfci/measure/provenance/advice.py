"""Advice on the configuration, so that a side's own code is what runs. Reads its tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.files import parse_toml
from perfci.worker.own_packages import NO_LIBRARY, packages_in, project_folders

_SCRIPT = "{python} setup.py build_ext --inplace"
_BACKENDS = ("scikit_build_core", "mesonpy", "maturin", "hatchling", "setuptools", "poetry", "flit")
_TARGET = ".perfci-build"
_INSTALL = "{python} -m pip install --no-deps --no-build-isolation --target " + _TARGET
_USUAL = frozenset({".", "src"})
"""The default of ``python_path``, which is named if the tree has something there."""
_NO_MODULES = frozenset({"setup.py", "conftest.py", "noxfile.py"})


@dataclass(frozen=True, slots=True)
class ConfigurationAdvice:
    """Advice for a side's ``tree`` under this ``python_path``; ``built``: it has a ``build``.

    Each answer is the setting to make, or an empty text.
    """

    tree: Path
    python_path: Sequence[str] = ()
    built: bool = False

    def build(self) -> str:
        """Return the ``build`` key for a project whose compiled files its tree lacks."""
        if not any(
            (folder / "setup.py").is_file() or _backend(folder) for folder in self._projects
        ):
            return "Set `build` in [tool.perfci] to the commands that compile it."
        return self._set((), build=True)

    def path(self, file: str, module: str) -> str:
        """Return the ``python_path`` with which ``file`` (relative to the tree) is found.

        ``module`` is its dotted name where that is known. Where nothing was built and something has
        to be, the build comes with it: else it would be what is missing next.
        """
        return self._folder(folder_of(self.tree, file, module))

    def package(self, name: str) -> str:
        """Return the ``python_path`` with which the tree's package is found."""
        return self._folder(packages_in(str(self.tree)).get(name))

    def missing(self, names: Sequence[str]) -> str:
        """Return what to set for modules that were imported and not found.

        Those of a package that was found have to be compiled, where the project compiles anything.
        """
        tops = dict.fromkeys(name for name in names if "." not in name)
        if advice := next(filter(None, map(self.package, tops)), ""):
            return advice
        return self.build() if any("." in name for name in names) and self._must_build() else ""

    def _folder(self, folder: str | None) -> str:
        if folder is None or folder in self.python_path:
            return ""
        return self._set((folder,), build=self._must_build())

    def _must_build(self) -> bool:
        return not self.built and any(map(_compiles, self._projects))

    def _set(self, folders: Sequence[str], *, build: bool) -> str:
        """Return the advice: ``folders`` and, in a monorepo, those of its other distributions.

        One alone would only lead to the next: what is imported first imports the others.
        """
        tree = self.tree
        kept = [
            entry for entry in self.python_path if entry not in _USUAL or _has_modules(tree / entry)
        ]
        sources = _sources(tree)
        more = [*folders, *(sources if {*kept, *folders} & {*sources} else ())]
        settings = []
        if build:
            commands = [_build_command(tree, folder) for folder in self._projects]
            settings.append(f"build = {_listed(commands)}")
            if any(_TARGET in command for command in commands):
                kept.insert(0, _TARGET)
        if {*kept, *more} - {*self.python_path}:
            settings.append(f"python_path = {_listed(dict.fromkeys([*kept, *more]))}")
        return f"Set {' and '.join(settings)} in [tool.perfci]."

    @property
    def _projects(self) -> tuple[Path, ...]:
        """The folders of what is built: the tree's root, or the projects below it that compile.

        The first of these, where no project is known to.
        """
        inner = sorted(
            folder
            for depth in ("*", "*/*")
            for folder in self.tree.glob(depth)
            if not any(part.startswith(".") for part in folder.relative_to(self.tree).parts)
            and any((folder / name).is_file() for name in ("pyproject.toml", "setup.py"))
        )
        if (self.tree / "setup.py").is_file() or _backend(self.tree) or not inner:
            return (self.tree,)
        return tuple(filter(_compiles, inner)) or (inner[0],)


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


def _has_modules(folder: Path) -> bool:
    """Return whether something of a project's is imported from ``folder``."""
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return bool(packages - NO_LIBRARY or {path.name for path in folder.glob("*.py")} - _NO_MODULES)


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


def _listed(texts: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{text}"' for text in texts) + "]"


def _compiles(folder: Path) -> bool:
    """Return whether the project in ``folder`` has something to compile."""
    if any((folder / name).is_file() for name in ("CMakeLists.txt", "Cargo.toml")):
        return True
    signs = {"setup.py": r"ext_modules|Extension\(", "meson.build": "extension_module"}
    return any(
        (folder / name).is_file() and re.search(sign, (folder / name).read_text("utf-8", "replace"))
        for name, sign in signs.items()
    )


def _backend(folder: Path) -> str:
    """Return the build backend's name, or "" if none is named."""
    file = folder / "pyproject.toml"
    if not file.is_file():
        return ""
    try:
        system = parse_toml(file.read_text("utf-8", "replace")).get("build-system", {})
    except ValueError:  # of another commit, and no configuration of perfci's
        return ""
    named = str(system.get("build-backend", "")) if isinstance(system, dict) else ""
    return next((backend for backend in _BACKENDS if named.startswith(backend)), named)
