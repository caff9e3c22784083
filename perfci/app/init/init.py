"""``init``: a first configuration, a first benchmark, and a forge's workflows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfci.app.init.benchmark import first_benchmark, own_python, the_package
from perfci.app.init.github import GitHubOptions, workflows
from perfci.app.init.gitlab import pipeline
from perfci.app.init.kubernetes import KubernetesOptions, job
from perfci.app.init.new_files import require_folder
from perfci.app.notices import Say
from perfci.checkout.repository import Repository
from perfci.config.loading import OWN_FILE, PROJECT_FILE
from perfci.errors import UsageError
from perfci.files import parse_toml, read_regular

_CONFIGURATION = """\
[tool.perfci]
benchmarks = "{benchmarks}"   # the folder of bench_*.py files
budget = "10m"              # for everything a command measures
{keys}
[tool.perfci.metrics.latency_p50]
threshold = "5%"            # a slow-down of 5 % fails
"""

_PYTHON = """\
python = "{path}"   # the Python that has torch; perfci itself can be installed elsewhere
"""
_PYTHON_PATH = """\
python_path = [{folder}]   # where the package lies
"""
_IGNORED = "__pycache__/\n"


def initialise(
    repository: Repository,
    benchmarks: str,
    github: GitHubOptions | None,
    say: Say,
    package: str = "",
    gitlab: GitHubOptions | None = None,
    kubernetes: KubernetesOptions | None = None,
) -> None:
    """Write what isn't there yet; ``say`` hears what was written and what kept.

    UsageError where any of it can't be made: nothing is written then.

    ``benchmarks`` is the folder of benchmark files, ``package`` which of several is measured.
    Workflows are written where there are options for ``github``, a pipeline for ``gitlab``, a
    job for ``kubernetes``.
    """
    root = repository.root
    folder = (root / benchmarks).resolve()
    require_folder(root, Path(benchmarks))
    project = _parsed(root / PROJECT_FILE, _text(root / PROJECT_FILE))
    settled = _is_configured(root, project) and any(folder.glob("bench_*.py"))
    measured = None if settled else the_package(root, project, package)
    python = own_python(root)
    # the jobs that the workflows make have an environment of their own
    keys = _PYTHON.format(path=python) if python and not (github or gitlab or kubernetes) else ""
    if measured and not measured.reached:
        keys += _PYTHON_PATH.format(folder=json.dumps(measured.folder, ensure_ascii=False))
    asked = [
        *([workflows(repository, github)] if github else []),
        *([pipeline(root, gitlab)] if gitlab else []),
        *([job(repository, kubernetes)] if kubernetes else []),
    ]
    for one in asked:
        one.require_places(root)
    _configure(root, folder.relative_to(root.resolve()).as_posix(), keys, say)
    _ignore(root, python, say)
    first = folder / "bench_first.py"
    if any(folder.glob("bench_*.py")):
        say(f"kept     {benchmarks}/ has benchmarks already")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        first.write_text(first_benchmark(root, measured), encoding="utf-8")
        say(f"wrote    {benchmarks}/bench_first.py")
    for one in asked:
        one.write(root, say)


def _ignore(root: Path, python: str, say: Say) -> None:
    """Write a first .gitignore: what isn't ignored of a working tree is measured with it."""
    path = root / ".gitignore"
    if os.path.lexists(path):
        return
    environment = f"/{python.partition('/')[0]}/\n" if python else ""
    path.write_text(_IGNORED + environment, encoding="utf-8")
    say("wrote    .gitignore")


def _configure(root: Path, benchmarks: str, keys: str, say: Say) -> None:
    """Put a first configuration where none is: into pyproject.toml, where its layout takes it."""
    path, own = root / PROJECT_FILE, root / OWN_FILE
    text = _text(path)
    if _is_configured(root, _parsed(path, text)):
        say("kept     the configuration that is there")
        return
    mine = _CONFIGURATION.format(benchmarks=benchmarks, keys=keys)
    both = text + ("\n" if text else "") + mine
    if "\r\n" in text:
        both = both.replace("\r\n", "\n").replace("\n", "\r\n")
    if not _is_toml(both):  # `tool` is an inline table: no other place may add to it
        own.write_text(mine, encoding="utf-8")
        say(f"wrote    [tool.perfci] to a new {own.name}")
        return
    path.write_bytes(both.encode("utf-8"))
    say(f"wrote    [tool.perfci] {'in' if text else 'to a new'} {path.name}")


def _is_configured(root: Path, project: Mapping[str, Any]) -> bool:
    tool = project.get("tool", {})
    return (isinstance(tool, dict) and "perfci" in tool) or os.path.lexists(root / OWN_FILE)


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
