"""What commands' verdicts are of equal sides, and of one that does more by a share.

    python benchmarks/commands.py [--reports N] [--share S]

A repository's tool is a Python script that counts; head counts further by the share of what the
whole run takes. Prints how many of the reports had which status, by what was planted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "examples"))

from demo import commit, git  # noqa: E402

BENCHMARK = """\
import sys
import perfci

@perfci.benchmark
def tool():
    return perfci.command([sys.executable, "tool.py"])
"""
TURNS = 3_000_000


def main() -> None:
    """Build, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="commands-") as folder:
        repository = Path(folder) / "repository"
        benchmark = repository / "benchmarks" / "bench_tool.py"
        benchmark.parent.mkdir(parents=True)
        benchmark.write_text(BENCHMARK)
        _count(repository, TURNS)
        git(repository, "init", "--quiet", "--initial-branch=main")
        commit(repository, "base")
        started, counted = _took(repository, 1), _took(repository, TURNS)
        more = options.share * counted / (counted - started)
        for planted, turns in ((0.0, TURNS), (options.share, round(TURNS * (1 + more)))):
            _count(repository, turns)
            found = Counter(_status(repository) for _ in range(options.reports))
            print(f"planted {planted:.0%}: {dict(found)}", flush=True)


def _count(repository: Path, turns: int) -> None:
    (repository / "tool.py").write_text(f"sum(range({turns}))\n")


def _took(repository: Path, turns: int) -> float:
    """Return the least of ten runs, in s."""
    took = []
    for _ in range(10):
        began = time.perf_counter()
        line = [sys.executable, "-c", f"sum(range({turns}))"]
        subprocess.run(line, check=True, cwd=repository)
        took.append(time.perf_counter() - began)
    return min(took)


def _status(repository: Path) -> str:
    options = ("--allow-same-commit", "--json", "-", "-q")
    line = [sys.executable, "-m", "perfci", "compare", "HEAD", ".", *options]
    ran = subprocess.run(line, cwd=repository, capture_output=True, text=True, check=False)
    results = json.loads(ran.stdout)["results"]
    [row] = [one for one in results if one["metric"] == "latency_p50"]
    return f"{row['status']} {row['ratio']:.3f}"


if __name__ == "__main__":
    main()
