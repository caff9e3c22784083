"""Writes the requirements of the job that comments, with their hashes: ``make lock``.

uv is asked what perfci and its build backend come to under constraints.txt, for
each Python from 3.11 and each platform. It writes the hash of every file of a version; the job
that installs them takes wheels alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass

from perfci.commands.workflows import REQUIREMENTS
from tests.workflows.examples import ROOT

LOCK = ROOT / "templates" / "workflows" / REQUIREMENTS

HEAD = """\
# What the job that comments on pull requests installs besides perfci: all that perfci
# needs, and what perfci is built with. For Python 3.11 and newer, every file by its hash.
# perfci's `make lock` writes this file, and `perfci init --github` a copy of it.
"""
_LINE = re.compile(
    r"([A-Za-z0-9_.-]+)==([A-Za-z0-9_.+!-]+)( ; [^\n\\]+)? \\\n"
    r"((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)"
)


@dataclass(frozen=True, slots=True)
class Locked:
    """One version of a package, and the SHA-256 of each of its files that may be installed."""

    name: str
    version: str
    hashes: frozenset[str]


def needed() -> tuple[str, ...]:
    """Return what pyproject.toml asks for: to run, to comment, to be built."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        content = tomllib.load(file)
    project = content["project"]
    return (*project["dependencies"], *content["build-system"]["requires"])


def parse(text: str) -> tuple[Locked, ...]:
    """Return what a lock holds; AssertionError where it holds anything else."""
    assert text.startswith(HEAD)
    rest = text.removeprefix(HEAD)
    found = list(_LINE.finditer(rest))
    assert "".join(one[0] for one in found) == rest
    return tuple(
        Locked(one[1], one[2], frozenset(re.findall("sha256:([0-9a-f]+)", one[4]))) for one in found
    )


def resolve() -> str:
    """Return uv's answer from PyPI, its default, whatever this machine is configured for."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    return subprocess.run(
        [
            *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-config"),
            *("--universal", "--python-version=3.11", "--generate-hashes"),
            *("--only-binary=:all:", "--no-header", "--no-annotate"),
            *(f"--constraints={ROOT / 'constraints.txt'}", "-"),
        ],
        env=kept,
        input="\n".join(needed()),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout


def main() -> None:
    """Write the lock anew."""
    text = HEAD + resolve()
    locked = parse(text)
    LOCK.write_text(text, encoding="utf-8")
    print(f"{len(locked)} packages are in {LOCK.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
