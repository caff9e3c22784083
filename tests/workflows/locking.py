"""Writes the requirements of the job that comments, with their hashes: ``make lock``.

pip is asked what perfci's extra ``github`` and its build backend come to under constraints.txt.
Only wheels count. One for a newer glibc than was asked for has no hash here; pip then installs the
one that has.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from perfci.cli.init_github_report import REQUIREMENTS
from tests.workflows.examples import ROOT

LOCK = ROOT / "templates" / "workflows" / REQUIREMENTS
PYTHONS = ("3.11", "3.12")  # with the same answer: pip evaluates markers by the Python it runs on
MACHINES = ("x86_64", "aarch64")
GLIBC_MINORS = range(28, 4, -1)
PUBLIC = "https://files.pythonhosted.org/"

HEAD = """\
# What the job that comments on pull requests installs besides perfci: all that `perfci[github]`
# needs, and what perfci is built with. Wheels for Python 3.11 and 3.12 on Linux, by their hashes.
# perfci's `make lock` writes this file, and `perfci init --github` a copy of it.
"""
_LINE = re.compile(
    r"([A-Za-z0-9_.-]+)==([A-Za-z0-9_.+!-]+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)"
)


@dataclass(frozen=True, slots=True)
class Locked:
    """One version of a package, and the SHA-256 of each of its wheels that may be installed."""

    name: str
    version: str
    hashes: frozenset[str]


def needed() -> tuple[str, ...]:
    """Return what pyproject.toml asks for: to run, to comment, to be built."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        content = tomllib.load(file)
    project = content["project"]
    extra = project["optional-dependencies"]["github"]
    return (*project["dependencies"], *extra, *content["build-system"]["requires"])


def parse(text: str) -> tuple[Locked, ...]:
    """Return what a lock holds; AssertionError where it holds anything else."""
    assert text.startswith(HEAD)
    rest = text.removeprefix(HEAD)
    found = list(_LINE.finditer(rest))
    assert "".join(one[0] for one in found) == rest
    return tuple(
        Locked(one[1], one[2], frozenset(re.findall("sha256:([0-9a-f]+)", one[3]))) for one in found
    )


def render(locked: Mapping[str, Locked]) -> str:
    """Return the lock's text, in the order of the names."""
    lines = [
        " \\\n    ".join(
            [
                f"{one.name}=={one.version}",
                *(f"--hash=sha256:{each}" for each in sorted(one.hashes)),
            ]
        )
        for _, one in sorted(locked.items())
    ]
    return HEAD + "\n".join(lines) + "\n"


def resolve(requirements: tuple[str, ...], python: str, machine: str) -> dict[str, Locked]:
    """Return what pip would install on ``machine``, by name; nothing is installed."""
    with TemporaryDirectory() as empty:  # older versions of pip want it named
        report = _ask_pip(requirements, python, machine, empty)
    found = {}
    for one in json.loads(report)["install"]:
        name, version = one["metadata"]["name"], one["metadata"]["version"]
        origin = one["download_info"]
        if not origin["url"].startswith(PUBLIC):
            raise SystemExit(f"{name} would be of {origin['url']}: the lock is of PyPI's own files")
        hashes = frozenset({origin["archive_info"]["hashes"]["sha256"]})
        found[name.lower()] = Locked(name, version, hashes)
    return found


def _ask_pip(requirements: tuple[str, ...], python: str, machine: str, target: str) -> bytes:
    places = {"PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"}  # where a build of one's own may lie
    kept = {name: value for name, value in os.environ.items() if name not in places}
    return subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"),
            *("--report=-", "--only-binary=:all:", f"--target={target}"),
            f"--python-version={python}",
            *(f"--platform=manylinux_2_{minor}_{machine}" for minor in GLIBC_MINORS),
            f"--constraint={ROOT / 'constraints.txt'}",
            *requirements,
        ],
        env={**kept, "PIP_CONFIG_FILE": os.devnull},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def main() -> None:
    """Write the lock anew."""
    locked: dict[str, Locked] = {}
    for python in PYTHONS:
        for machine in MACHINES:
            for key, one in resolve(needed(), python, machine).items():
                known = locked.get(key, one)
                if known.version != one.version:
                    raise SystemExit(f"{one.name} is {known.version} and {one.version}: pin it")
                locked[key] = Locked(one.name, one.version, known.hashes | one.hashes)
    LOCK.write_text(render(locked), encoding="utf-8")
    print(f"{len(locked)} packages are in {LOCK.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
