"""How long a file of many small torch cases takes where a commit changes prose alone.

    python benchmarks/many_cases.py [--all] [--cases N...]

A case that is the same code on both sides has one round; ``--all`` measures it as any other. Of
files of two sizes the time that each further case takes says what 100 would; ``--cases 100``
measures them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

BENCHMARK = """\
import perfci
import torch


@perfci.benchmark(number=list(range({cases})))
def small(number):
    values = torch.arange(1000.0 + number)
    return lambda: values.mul(2.0).sum()
"""

FILE = 100


def main() -> None:
    """Compare files of a few and of some more cases, and print what each further one cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--cases", type=int, nargs="+", default=[5, 15])
    options = parser.parse_args()
    found = [measured(cases, everything=options.all) for cases in options.cases]
    few, many = min(found), max(found)
    if many.cases > few.cases:
        each_s = (many.wall_s - few.wall_s) / (many.cases - few.cases)
        whole_s = few.wall_s + each_s * (FILE - few.cases)
        print(f"each further case: {each_s:.2f} s; so {FILE} would take {whole_s:.0f} s")


@dataclass(frozen=True, order=True, slots=True)
class Measured:
    """How long a file of so many cases took."""

    cases: int
    wall_s: float


def measured(cases: int, *, everything: bool) -> Measured:
    """Build a repository of so many cases, compare its two commits, and print how that went."""
    with tempfile.TemporaryDirectory() as folder:
        repository, report = Path(folder, "repository"), Path(folder, "report.json")
        (repository / "benchmarks").mkdir(parents=True)
        text = BENCHMARK.format(cases=cases)
        (repository / "benchmarks" / "bench_small.py").write_text(text, encoding="utf-8")
        git(repository, "init", "--quiet", "--initial-branch=main")
        for number in ("one", "two"):
            (repository / "README.md").write_text(number, encoding="utf-8")
            git(repository, "add", "--all")
            git(repository, "commit", "--quiet", "--message", number)
        command = [sys.executable, "-m", "perfci", "compare", "HEAD~1", "HEAD", "--quiet"]
        command += [
            "--budget",
            "2h",
            "--json",
            str(report),
            *(["--measure-same-code"] if everything else []),
        ]
        cache = {"PERFCI_CACHE_DIR": str(Path(folder, "cache"))}
        subprocess.run(command, cwd=repository, env=os.environ | cache, check=False)
        said = json.loads(report.read_text(encoding="utf-8"))
    timing = said["timing"]
    share = timing["measured_s"] / timing["wall_s"]
    print(
        f"{cases} cases, {timing['rounds']} rounds: {timing['wall_s']:.1f} s, {share:.0%} of it "
        f"measuring; same code: {len(said['same_code'])}; verdict: {said['verdict']['status']}",
        flush=True,
    )
    return Measured(cases, timing["wall_s"])


def git(repository: Path, *arguments: str) -> None:
    """Run git there, as somebody."""
    who = ("-c", "user.name=perfci", "-c", "user.email=perfci@example.invalid")
    subprocess.run(["git", *who, *arguments], cwd=repository, check=True)


if __name__ == "__main__":
    main()
