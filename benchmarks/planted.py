"""Whether the first line of a why names what was planted, and where: a repository for each fault.

    python benchmarks/planted.py SET [--only KIND] [--repeats N] [--json FILE]

A file of ``benchmarks/planted/SET`` is a fault: the files of a repository, of which base alone has
the lines marked ``-``, and head those marked ``+``. A first line is right where it names a line
marked ``!``, which makes the fault or pays for it, and one of the words after ``right:``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "examples"))

from demo import commit, git  # noqa: E402

MARKED = re.compile(r"( *)([-+]?)(!?)(?: |$)(.*)")


@dataclass(frozen=True, slots=True)
class Fault:
    """The files of both sides, and what a right first line names: a word, and a place of head."""

    words: tuple[str, ...]
    base: dict[str, str]
    head: dict[str, str]
    places: frozenset[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said first, and whether it is right."""

    kind: str
    first: str
    right: bool
    took_s: float


def main() -> int:
    """Plant, explain, and print a table; 1 where a first line is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=[one.name for one in sorted((HERE / "planted").iterdir())])
    parser.add_argument("--only", metavar="KIND", default="*")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print("| fault | right | first line | took |\n|---|---|---|--:|", flush=True)
    answers = []
    for file in sorted((HERE / "planted" / options.set).glob(f"{options.only}.txt")):
        fault = read(file.read_text())
        with tempfile.TemporaryDirectory() as folder:
            repository = Path(folder) / "repository"
            _plant(repository, fault)
            for _ in range(options.repeats):
                one = _explained(repository, file.stem, fault)
                right = "yes" if one.right else "**no**"
                said = one.first.replace("|", "\\|")
                print(f"| {one.kind} | {right} | {said} | {one.took_s:.0f} s |", flush=True)
                answers.append(one)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in answers], indent=2) + "\n")
    return 0 if all(one.right for one in answers) else 1


def read(text: str) -> Fault:
    """Return the fault that a file describes."""
    first, *files = text.split("=== ")
    base, head, places = {}, {}, set()
    for file in files:
        name, _, body = file.partition("\n")
        sides: dict[str, list[str]] = {"-": [], "+": []}
        for line in body.splitlines():
            marked = MARKED.fullmatch(line)
            indent, side, pays, code = marked.groups() if marked else ("", "", "", line)
            if not (side or pays):
                indent, code = "", line
            for one in side or "-+":
                sides[one].append(f"{indent}{code}".rstrip())
            if pays:
                places.add(f"{name}:{len(sides['+'])}")
        base[name], head[name] = ("\n".join([*sides[side], ""]) for side in "-+")
    return Fault(tuple(first.removeprefix("right:").split()), base, head, frozenset(places))


def _plant(repository: Path, fault: Fault) -> None:
    """Make the tags base and head."""
    repository.mkdir()
    git(repository, "init", "--quiet", "--initial-branch=main")
    for side, files in (("base", fault.base), ("head", fault.head)):
        for name, text in files.items():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            (repository / name).write_text(text)
        commit(repository, side)
        git(repository, "tag", side)


def _explained(repository: Path, kind: str, fault: Fault) -> Answer:
    command = [sys.executable, "-m", "perfci", "explain", "base", "head", "--quiet"]
    began = time.monotonic()
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) < 2:
        sys.exit(done.stderr or done.stdout)
    first = lines[1].strip()
    place = first.removesuffix(" (a changed line)").rpartition(", ")[2]
    right = place in fault.places and any(word in first for word in fault.words)
    return Answer(kind, first, right, took_s)


if __name__ == "__main__":
    sys.exit(main())
