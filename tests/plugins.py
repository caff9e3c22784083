"""Distributions that add to perfci by an entry point: built as wheels and installed by pip."""

from __future__ import annotations

import subprocess
import sys
import zipfile
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
        f"{info}/entry_points.txt": f"[{group}]\n{name} = {module}\n",
    }
    wheel = folder / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
        archive.writestr(f"{info}/RECORD", record)
    installed = into or folder / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, f"--target={installed}", wheel], check=True)
    return installed


class Environment:
    """A virtual environment of a user's, with nothing of perfci in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
        self.python = str(root / "bin" / "python")

    def install(self, group: str, name: str, source: str) -> None:
        (folder,) = self.root.glob("lib/python*/site-packages")
        install(self.root, group, name, source, into=folder)
