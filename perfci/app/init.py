"""``init``: a first configuration, a first benchmark, and GitHub's workflows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from perfci.app.init_github import GitHubOptions, write_workflows
from perfci.app.notices import Say
from perfci.checkout.repository import Repository
from perfci.errors import UsageError
from perfci.files import parse_toml, read_regular

_CONFIGURATION = """\
[tool.perfci]
benchmarks = "{benchmarks}"   # the folder of bench_*.py files
budget = "10m"              # for everything a command measures
{python}
[tool.perfci.metrics.latency_p50]
threshold = "5%"            # a slow-down of 5 % fails
"""

_BENCHMARK = '''\
"""A first benchmark. Replace the model by yours; `perfci list` shows the cases."""

import torch

import perfci


@perfci.benchmark(batch=[1, 16], mode=["eager"])
def feed_forward(batch, mode):
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)
    ).eval()
    return perfci.inference(model, torch.randn(batch, 256), mode=mode, items=batch)
'''

_PYTHON = """\
python = "{path}"   # the Python that has torch; perfci itself can be installed elsewhere
"""
_ENVIRONMENTS = (".venv", "venv")


def initialise(
    repository: Repository, benchmarks: str, github: GitHubOptions | None, say: Say
) -> None:
    """Write what isn't there yet; ``say`` hears what was written and what kept.

    ``benchmarks`` is the folder of benchmark files. Workflows are written where there are options
    for ``github``.
    """
    root = repository.root
    folder = (root / benchmarks).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise UsageError(
            "outside-repository",
            f"{benchmarks} lies outside the repository",
            "Choose a folder inside it, so that its files are part of every commit.",
        )
    # the jobs that the workflows make have an environment of their own
    python = "" if github else _own_python(root)
    _configure(root, folder.relative_to(root.resolve()).as_posix(), python, say)
    first = folder / "bench_first.py"
    if any(folder.glob("bench_*.py")):
        say(f"kept     {benchmarks}/ has benchmarks already")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        first.write_text(_BENCHMARK, encoding="utf-8")
        say(f"wrote    {benchmarks}/bench_first.py")
    if github:
        write_workflows(repository, github, say)


def _own_python(root: Path) -> str:
    """Return the Python of the environment in the project's folder, if there is one."""
    named = (f"{name}/bin/python" for name in _ENVIRONMENTS)
    return next((one for one in named if os.access(root / one, os.X_OK)), "")


def _configure(root: Path, benchmarks: str, python: str, say: Say) -> None:
    """Put a first configuration where none is: into pyproject.toml, where its layout takes it."""
    from perfci.config.loading import OWN_FILE, PROJECT_FILE

    path, own = root / PROJECT_FILE, root / OWN_FILE
    text = _text(path)
    tool = _parsed(path, text).get("tool", {})
    if (isinstance(tool, dict) and "perfci" in tool) or os.path.lexists(own):
        say("kept     the configuration that is there")
        return
    mine = _CONFIGURATION.format(
        benchmarks=benchmarks, python=_PYTHON.format(path=python) if python else ""
    )
    both = text + ("\n" if text else "") + mine
    if "\r\n" in text:
        both = both.replace("\r\n", "\n").replace("\n", "\r\n")
    if not _is_toml(both):  # `tool` is an inline table: no other place may add to it
        own.write_text(mine, encoding="utf-8")
        say(f"wrote    [tool.perfci] to a new {own.name}")
        return
    path.write_bytes(both.encode("utf-8"))
    say(f"wrote    [tool.perfci] {'in' if text else 'to a new'} {path.name}")


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(
            "unreadable-configuration",
            f"{path} can't be read: {reason}",
            "Mend it, then run `perfci init` again.",
        ) from error


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise UsageError(
            "bad-toml", f"{path} can't be read: {error}", "Mend it, then run `perfci init` again."
        ) from error


def _is_toml(text: str) -> bool:
    try:
        parse_toml(text)
    except ValueError:
        return False
    return True
