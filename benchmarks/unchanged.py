"""Whether a why is silent of code that did not change: benchmarks of many kinds, explained.

    python benchmarks/unchanged.py [-k WORDS] [--json FILE]

A repository of ``benchmarks/unchanged`` has two commits: the second adds comments and moves the
functions, so that every line lies elsewhere. ``explain`` compares the first with itself and with
the second. Whatever it says differs is false; hints are of head alone, and are not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "examples"))

from demo import commit, git  # noqa: E402

NOTE = "# Copyright of those who wrote it.\n# It says nothing of what follows.\n\n"


def main() -> int:
    """Build, explain, and print a table; 1 where anything was said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", dest="words", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    answers: dict[str, dict[str, list[str]]] = {}
    print("| sides | case | silent | what was said |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "repository"
        _build(repository)
        for sides in (("base", "base"), ("base", "moved")):
            began = time.monotonic()
            answers[", ".join(sides)] = found = _explained(repository, sides, options.words)
            for case, said in found.items():
                wrong = [line.replace("|", "\\|") for line in said if _is_said(line)]
                silent = "**no**" if wrong else "yes"
                print(f"| {', '.join(sides)} | {case} | {silent} | {'<br>'.join(wrong)} |")
            print(f"{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if options.json:
        options.json.write_text(json.dumps(answers, indent=1) + "\n")
    said = [line for found in answers.values() for lines in found.values() for line in lines]
    return int(any(map(_is_said, said)))


def _build(repository: Path) -> None:
    """Make the tags base and moved."""
    for file in sorted((HERE / "unchanged").rglob("*.py")):
        copy = repository / file.relative_to(HERE / "unchanged")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text())
    git(repository, "init", "--quiet", "--initial-branch=main")
    commit(repository, "base")
    git(repository, "tag", "base")
    for file in repository.rglob("quiet/*.py"):
        head, *functions = file.read_text().split("\n\n\n")
        file.write_text("\n\n\n".join([NOTE + head, *reversed(functions)]))
    commit(repository, "moved")
    git(repository, "tag", "moved")


def _explained(repository: Path, sides: tuple[str, str], words: str) -> dict[str, list[str]]:
    command = [sys.executable, "-m", "perfci", "explain", *sides, "--quiet", "-k", words]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("  "):
            found[next(reversed(found))].append(line.strip())
        else:
            found[line] = []
    return found


def _is_said(line: str) -> bool:
    return line != "nothing differs inside" and not line.startswith("hint: ")


if __name__ == "__main__":
    sys.exit(main())
