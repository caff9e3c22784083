"""Whether `import_time` leans to a side where the import did not change; calls on files by side.

    python benchmarks/import_lean.py [--sessions 4] [--rounds 5]
    python benchmarks/import_lean.py --calls

A package of 500 modules in two commits that differ in a docstring is compared in both orders, so
that each commit is head once. Sessions alternate between the orders. For each order and for both it
prints head ÷ base of `import_time`, and of the processor time that the same workers take for the
same import, which other processes disturb less. The 95 % intervals are of pairs of rounds, and of
the sessions' means: a session's own state is in the second alone. `--calls` counts calls on files
by name with strace, of each side's workers in a session of two rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from perfci.stats.t_tests import paired_t

CONFIGURATION = """\
[tool.perfci]
rounds = {rounds}
max_rounds = {rounds}
round_time = 0.02
burst = 0.004
warmup = 0.05
budget = "600s"
why = false
pass_env = ["LEAN"]
"""
BENCHMARK = """\
import os
import time

began = time.thread_time_ns()
import big

taken = time.thread_time_ns() - began
side = "head" if os.environ["TMPDIR"].endswith("tmph") else "base"
with open(os.path.join(os.environ["LEAN"], side), "a") as file:
    print(taken, file=file)
import perfci

@perfci.benchmark
def case():
    return lambda: big.part0.f0(1)
"""
ORDERS = (("docstring", "plain"), ("plain", "docstring"))
_SIDE = re.compile(r"/ran/(base|head)-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=4, help="of each order")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--modules", type=int, default=500)
    parser.add_argument("--calls", action="store_true", help="count calls alone, by strace")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        repository = make_repository(folder / "project", options.modules, options.rounds)
        if options.calls:
            count_calls(repository, folder / "traces")
        else:
            measure(repository, options.sessions)


def measure(repository: Path, count: int) -> None:
    sessions: dict[tuple[str, str], list[Imports]] = {order: [] for order in ORDERS}
    for _ in range(count):
        for order in ORDERS:
            sessions[order].append(imports_of(repository, order))
    every = [session for of_order in sessions.values() for session in of_order]
    labels = {" → ".join(order): of_order for order, of_order in sessions.items()}
    for label, of_order in {**labels, "both orders": every}.items():
        show(f"{label}, import_time", [session.elapsed for session in of_order])
        show(f"{label}, processor", [session.processor for session in of_order])
    print(f"load averages: {' '.join(f'{load:.1f}' for load in os.getloadavg())}")


def count_calls(repository: Path, traces: Path) -> None:
    if not shutil.which("strace"):
        sys.exit("there is no strace here")
    calls = calls_on_files(repository, traces)
    share = calls["head"] / calls["base"] - 1.0
    print(
        f"base {calls['base']:,}, head {calls['head']:,} ({share:+.2%}), "
        f"of neither {calls['neither']:,}"
    )


def make_repository(folder: Path, modules: int, rounds: int) -> Path:
    """Make a repository with the tags `plain` and `docstring`."""
    package = folder / "big"
    package.mkdir(parents=True)
    functions = "".join(f"def f{number}(x):\n    return x + {number}\n" for number in range(8))
    for number in range(modules):
        (package / f"part{number}.py").write_text(functions)
    lines = (f"from big import part{number}\n" for number in range(modules))
    (package / "__init__.py").write_text("".join(lines))
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "bench_big.py").write_text(BENCHMARK)
    (folder / "pyproject.toml").write_text(CONFIGURATION.format(rounds=rounds))
    git = ("git", "-c", "user.name=T", "-c", "user.email=t@example.invalid", "-C", str(folder))
    subprocess.run((*git, "init", "--quiet", "--initial-branch=main"), check=True)
    for tag, docstring in (("plain", ""), ("docstring", '"""A docstring."""\n')):
        (package / "part7.py").write_text(docstring + functions)
        subprocess.run((*git, "add", "--all"), check=True)
        subprocess.run((*git, "commit", "--quiet", "--message", tag), check=True)
        subprocess.run((*git, "tag", tag), check=True)
    return folder


class Imports(NamedTuple):
    """Logarithms of head ÷ base, one per round of a session."""

    elapsed: list[float]
    processor: list[float]


def imports_of(repository: Path, order: tuple[str, str]) -> Imports:
    with tempfile.TemporaryDirectory(dir=repository.parent) as notes:
        report = compare(repository, order, Path(notes))
        times = [Path(notes, side).read_text().split()[1:] for side in ("base", "head")]
    (row,) = (row for row in report["results"] if row["metric"] == "import_time")
    elapsed = [row[side]["values"] for side in ("base", "head")]
    # each side's first import was that of its benchmarks' discovery
    assert {len(each) for each in (*times, *elapsed)} == {len(elapsed[0])}
    return Imports(_log_ratios(*elapsed), _log_ratios(*([*map(float, each)] for each in times)))


def _log_ratios(base: Sequence[float], head: Sequence[float]) -> list[float]:
    return [math.log(after / before) for before, after in zip(base, head, strict=True)]


def compare(repository: Path, order: tuple[str, str], notes: Path) -> dict[str, Any]:
    """Return the report of a comparison, in which each import leaves its time below ``notes``."""
    report = repository.parent / "report.json"
    command = (sys.executable, "-m", "perfci", "compare", *order, "--measure-same-code", "--quiet")
    done = subprocess.run(
        (*command, "--json", str(report)),
        cwd=repository,
        env={
            **os.environ,
            "PERFCI_CACHE_DIR": str(repository.parent / "cache"),
            "LEAN": str(notes),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    content: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {}
    if not content or content["failures"]:
        sys.exit(done.stdout + done.stderr)
    report.unlink()
    return content


def show(label: str, sessions: Sequence[Sequence[float]]) -> None:
    of_pairs = [ratio for session in sessions for ratio in session]
    of_sessions = [mean(session) for session in sessions]
    cells = [f"{_interval(values)} of {len(values)}" for values in (of_pairs, of_sessions)]
    print(f"{label:35} pairs {cells[0]}, sessions {cells[1]}")


def _interval(values: Sequence[float]) -> str:
    test = paired_t([0.0] * len(values), values)
    if test.estimate is None or test.lo is None or test.hi is None:
        return "no interval"
    return " … ".join(f"{math.expm1(one):+.2%}" for one in (test.lo, test.estimate, test.hi))


def calls_on_files(repository: Path, traces: Path) -> Counter[str]:
    """Return how many calls with a file's name the workers of each side make in two rounds."""
    traces.mkdir()
    configuration = repository / "pyproject.toml"
    text = re.sub(r"(rounds) = \d+", r"\1 = 2", configuration.read_text())
    launcher = f'["strace", "-DDD", "-qq", "-ff", "-e", "trace=%file", "-o", "{traces}/of"]'
    configuration.write_text(f"{text}launcher = {launcher}\n")
    compare(repository, ORDERS[0], traces.parent)
    calls: Counter[str] = Counter()
    for trace in traces.iterdir():
        lines = trace.read_text(errors="replace").splitlines()
        sides = {side for line in lines for side in _SIDE.findall(line)}
        side = sides.pop() if len(sides) == 1 else "neither"
        calls[side] += sum("(" in line for line in lines)
    return calls


if __name__ == "__main__":
    main()
