"""How long a file of 100 small torch cases takes where a commit changes prose alone.

    python benchmarks/many_cases.py [--all] [--cases N]

A case that is the same code on both sides has one round; ``--all`` measures it as any other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BENCHMARK = """\
import perfci
import torch


@perfci.benchmark(number=list(range({cases})))
def small(number):
    values = torch.arange(1000.0 + number)
    return lambda: values.mul(2.0).sum()
"""


def main() -> None:
    """Build the repository, compare its two commits, and print how long that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--cases", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repository, report = Path(folder, "repository"), Path(folder, "report.json")
        (repository / "benchmarks").mkdir(parents=True)
        text = BENCHMARK.format(cases=options.cases)
        (repository / "benchmarks" / "bench_small.py").write_text(text, encoding="utf-8")
        git(repository, "init", "--quiet", "--initial-branch=main")
        for number in ("one", "two"):
            (repository / "README.md").write_text(number, encoding="utf-8")
            git(repository, "add", "--all")
            git(repository, "commit", "--quiet", "--message", number)
        command = [sys.executable, "-m", "perfci", "compare", "HEAD~1", "HEAD", "--quiet"]
        command += ["--budget", "2h", "--json", str(report), *(["--all"] if options.all else [])]
        cache = {"PERFCI_CACHE_DIR": str(Path(folder, "cache"))}
        subprocess.run(command, cwd=repository, env=os.environ | cache, check=False)
        said = json.loads(report.read_text(encoding="utf-8"))
        timing = said["timing"]
        print(f"{options.cases} cases, {timing['rounds']} rounds: {timing['wall_s']:.0f} s")
        print(f"same code: {len(said['same_code'])}; verdict: {said['verdict']['status']}")


def git(repository: Path, *arguments: str) -> None:
    """Run git there, as somebody."""
    who = ("-c", "user.name=perfci", "-c", "user.email=perfci@example.invalid")
    subprocess.run(["git", *who, *arguments], cwd=repository, check=True)


if __name__ == "__main__":
    main()
