"""A user's virtual environment, made quickly."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path


class Environment:
    """A virtual environment in ``folder``, whose builders are the tests' own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
        subprocess.run(command, check=True)
        self.python = str(folder / "bin" / "python")
        (self.packages,) = folder.glob("lib/python*/site-packages")
        # What lies there is found, but the .pth files there are not read
        (self.packages / "builders.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def install(self, *arguments: str) -> None:
        """Install without the network, by uv: the backends' hooks are the same, and pip is slow."""
        offline = ["--no-index", "--offline", "--no-deps", "--no-build-isolation", "--no-cache"]
        uv = [sys.executable, "-m", "uv", "pip", "install", f"--python={self.python}", "--quiet"]
        _run([*uv, *offline, *arguments])

    def run(self, *arguments: str, cwd: Path | None = None) -> None:
        _run([self.python, *arguments], cwd)


def _run(command: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, env=with_builders(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def with_builders() -> dict[str, str]:
    """Return this environment with meson, ninja and cmake of the tests' Python on ``PATH``."""
    return {
        **os.environ,
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
    }
