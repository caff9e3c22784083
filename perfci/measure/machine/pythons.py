"""The Pythons of this machine that could measure, and the modules that they lack."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

_USUAL = (".venv", "venv")
"""Usual folders of a project's virtual environment."""
_PROBE = "import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))"
_MOST_S = 20
"""Longest time of a probe."""
_KNOWN = sys.stdlib_module_names | {"numpy", "perfci", "torch", "torchvision", "transformers"}
"""Modules that a misspelt import may mean, besides the project's own."""


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


def lacking_module_advice(
    python: str, module: str, environ: Mapping[str, str], root: Path, names: Iterable[str] = ()
) -> str:
    """Return what to do if ``python`` measured and lacks ``module``.

    ``names`` are those of the project's packages. The advice never is to install a misspelt import,
    or to install anything into perfci's own environment.
    """
    named = "name the Python that has it: `python` in [tool.perfci], or --python"
    if other := other_python(module, environ, root):
        named = f"{named} {shlex.quote(other)}, which has it"
    if meant := _misspelt(module, {*names, *_KNOWN}):
        return f"{python} has no {module}. Did you mean `import {meant}`? Otherwise {named}"
    if _is_own(Path(python)):
        return (
            f"perfci's own Python measured, {python}, and has no {module}. Leave that environment "
            f"as it is and {named}"
        )
    return (
        f"{python} measured, and has no {module}. Install it there, `{shlex.quote(python)} -m pip "
        f"install {module}`, or {named}"
    )


def _misspelt(module: str, names: Collection[str]) -> str:
    """Return the name that ``module`` seems to misspell, by a letter or so, or an empty text."""
    if module in names:
        return ""
    near = [name for name in names if abs(len(name) - len(module)) < 2 and len(name) > 3]
    close = difflib.get_close_matches(module, near, n=1, cutoff=0.75)
    return close[0] if close else ""


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
