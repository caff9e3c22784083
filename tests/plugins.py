"""Distributions that add to perfci by an entry point, as an installer leaves them."""

from __future__ import annotations

import venv
from pathlib import Path


def install(folder: Path, group: str, name: str, source: str, *, into: Path | None = None) -> Path:
    """Install a distribution ``someones-NAME`` of one module; return the folder for ``PYTHONPATH``.

    Its module is the entry point ``name`` of ``group``. ``into`` may be a Python's own folder.
    """
    module, info = f"someones_{name}", f"someones_{name}-1.0.dist-info"
    files = {
        f"{module}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: someones-{name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/INSTALLER": "pip\n",
        f"{info}/entry_points.txt": f"[{group}]\n{name} = {module}\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    installed = into or folder / "installed"
    (installed / info).mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        (installed / path).write_text(text, encoding="utf-8")
    return installed


def bare_environment(root: Path, *, site_packages: bool = False) -> tuple[str, Path]:
    """Make a virtual environment without pip; return its Python and its ``site-packages``."""
    venv.create(root, symlinks=True, system_site_packages=site_packages)
    (packages,) = root.glob("lib/python*/site-packages")
    return str(root / "bin" / "python"), packages


class Environment:
    """A virtual environment of a user's, with nothing of perfci in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.python, self._packages = bare_environment(root)

    def install(self, group: str, name: str, source: str) -> None:
        install(self.root, group, name, source, into=self._packages)
