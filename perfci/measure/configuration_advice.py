"""Advice on the settings with which a side's own code runs. Found by reading the side's tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.files import parse_toml
from perfci.worker.own_packages import NO_LIBRARY, packages_in, project_folders

_SCRIPT = "{python} setup.py build_ext --inplace"
_BACKENDS = ("scikit_build_core", "mesonpy", "maturin", "hatchling", "setuptools", "poetry", "flit")
"""Build backends, by how their module's name begins."""
_TARGET = ".perfci-build"
"""The folder in the tree that ``_INSTALL`` installs into."""
_INSTALL = "{python} -m pip install --no-deps --no-build-isolation --target " + _TARGET
_USUAL = frozenset({".", "src"})
"""The default of ``python_path``. Advice names these folders only if they have modules."""
_NO_MODULES = frozenset({"setup.py", "conftest.py", "noxfile.py"})
"""Python files of a project that its benchmarks don't import."""


@dataclass(frozen=True, slots=True)
class ConfigurationAdvice:
    """Advice for a side with this ``tree`` and ``python_path``. ``built``: it has a ``build``.

    Each method returns the settings to make, or an empty text.
    """

    tree: Path
    python_path: Sequence[str] = ()
    built: bool = False

    def build(self) -> str:
        """Return the advice to set ``build``: the tree lacks its project's compiled files."""
        if not any(
            (folder / "setup.py").is_file() or _backend(folder) for folder in self._projects
        ):
            return "Set `build` in [tool.perfci] to the commands that compile it."
        return self._set((), build=True)

    def path(self, file: str, module: str) -> str:
        """Return the advice to set ``python_path`` so that ``file`` is found.

        ``file`` is relative to the tree. ``module`` is its dotted name, or empty if unknown. The
        advice includes ``build`` if the project has to be built and wasn't: the import would
        otherwise fail again.
        """
        return self._folder(folder_of(self.tree, file, module))

    def package(self, name: str) -> str:
        """Return the advice to set ``python_path`` so that the tree's package ``name`` is found."""
        return self._folder(packages_in(str(self.tree)).get(name))

    def missing(self, names: Sequence[str]) -> str:
        """Return the advice for modules that were imported and not found.

        A dotted name means that its package was found. If the project compiles anything, the
        missing module has to be compiled.
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
        """Return the advice to add ``folders`` to ``python_path`` and, with ``build``, to build.

        In a monorepo the folders of its other distributions are added, too: its packages import
        each other, so that one folder alone would only lead to the next advice.
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
        """The folders to build: the tree's root, or the projects below it that compile something.

        If no project below is known to compile anything, the first one.
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
    """Return whether ``folder`` has a package or a module that a project may import."""
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return bool(packages - NO_LIBRARY or {path.name for path in folder.glob("*.py")} - _NO_MODULES)


def _build_command(tree: Path, folder: Path) -> str:
    below = "" if folder == tree else str(folder.relative_to(tree))
    if (folder / "setup.py").is_file() and _backend(folder) in {"", "setuptools"}:
        return f"bash -c 'cd {below} && {_SCRIPT}'" if below else _SCRIPT
    return f"{_INSTALL} ./{below}" if below else f"{_INSTALL} ."


def _sources(tree: Path) -> tuple[str, ...]:
    """Return the folders in which the distributions of ``tree`` have their packages."""
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
    except ValueError:  # another commit's mistake: this isn't the file that configures perfci
        return ""
    named = str(system.get("build-backend", "")) if isinstance(system, dict) else ""
    return next((backend for backend in _BACKENDS if named.startswith(backend)), named)
