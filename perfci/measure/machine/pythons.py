"""The Pythons of this machine that could measure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_USUAL = (".venv", "venv")
"""Usual folders of a project's virtual environment."""
_PROBE = "import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))"
_MOST_S = 20
"""Longest time of a probe."""


def has_module(python: str, module: str) -> bool:
    """Return whether ``python`` runs and finds the top-level ``module``, without importing it."""
    try:
        probe = subprocess.run(
            [python, "-c", _PROBE, module], capture_output=True, check=False, timeout=_MOST_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def project_python(root: Path) -> str:
    """Return the Python of an environment in the project's folder, preferably one with torch.

    The environment that perfci runs in is left out if it has no torch: it is for perfci alone.
    """
    environments = [
        entry.name for entry in root.iterdir() if os.access(entry / "bin" / "python", os.X_OK)
    ]
    environments.sort(key=lambda name: (name not in _USUAL, name))
    pythons = [f"{name}/bin/python" for name in environments]
    with_torch = (python for python in pythons if has_module(str(root / python), "torch"))
    others = (python for python in pythons if not _is_own(root / python))
    return next(with_torch, "") or next(others, "")


def other_python(module: str, environ: Mapping[str, str], root: Path) -> str:
    """Return the path of a Python with ``module``, in an environment or on PATH. Else empty."""
    tried = dict.fromkeys(_candidates(environ, root))
    return next((python for python in tried if has_module(python, module)), "")


def _candidates(environ: Mapping[str, str], root: Path) -> Iterator[str]:
    for name in _USUAL:
        if os.access(root / name / "bin" / "python", os.X_OK):
            yield str(root / name / "bin" / "python")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environment := environ.get(variable):
            yield str(Path(environment) / "bin" / "python")
    for name in ("python", "python3"):
        if python := shutil.which(name, path=environ.get("PATH")):
            yield python


def _is_own(python: Path) -> bool:
    """Return whether ``python`` is in the environment that perfci itself runs in."""
    return python.parent.parent.resolve() == Path(sys.prefix).resolve()
