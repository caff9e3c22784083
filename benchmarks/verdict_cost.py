"""What a verdict costs a user: wall time, share of it measuring, and what was decided.

    python benchmarks/verdict_cost.py [--repetitions N] [--eager] [--demo]

One small eager benchmark at defaults, of two commits that differ in code and not in speed, and of
two of which the later is 8 % slower; the demo's four eager cases against themselves at a threshold
of 2 %, with ``--eager`` these alone; with ``--demo`` the demo's own comparison. Nothing else should
run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

from demo import build, commit, git  # noqa: E402

BENCHMARK = """\
import perfci
import torch
from library import model


@perfci.benchmark
def small():
    values = torch.ones(64, 64)
    return lambda: model(values)
"""
LIBRARY = """\
import torch


def model(values):
    for _ in range({turns}):  # {name}
        values = torch.relu(values @ values) * 0.01
    return values
"""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--demo", action="store_true")
    options = parser.parse_args()
    print("| what | wall | rounds | measuring | verdict | gating, decided | latency |")
    print("|---|--:|--:|--:|---|--:|---|")
    with tempfile.TemporaryDirectory() as folder:
        repository = small(Path(folder) / "small")
        for _ in range(0 if options.eager else options.repetitions):
            _report("unchanged", repository, "same", "unchanged")
            _report("8 % slower", repository, "unchanged", "slower")
        demo = Path(folder) / "demo"
        build(demo)
        at_2 = Path(folder) / "perfci.toml"
        at_2.write_text('python_path = ["."]\n[metrics.latency_p50]\nthreshold = 0.02\n')
        eager = (
            "main",
            "main",
            "--allow-same-commit",
            "--measure-same-code",
            "-k",
            "attention or mixer",
        )
        for _ in range(options.repetitions):
            _report("four eager cases at 2 %", demo, *eager, "--config", str(at_2))
        if options.demo:
            _report("demo", demo, "main", "feature")


def _report(what: str, repository: Path, *options: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "perfci", "compare", *options, "--json", str(path)]
        done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
        if not path.is_file():
            sys.exit(done.stderr)
        report = json.loads(path.read_text())
    timing, rows = report["timing"], report["results"]
    gating = [row for row in rows if row["gate"] == "fail" and row["method"] == "paired_t"]
    decided = sum(row["status"] != "inconclusive" for row in gating)
    latency = [
        f"{row['ratio']:.3f} ({row['ratio_lo']:.3f} to {row['ratio_hi']:.3f})"
        for row in rows
        if row["metric"] == "latency_p50" and row["ratio_lo"]
    ]
    share = timing["measured_s"] / timing["wall_s"]
    print(
        f"| {what} | {timing['wall_s']:.1f} s | {timing['rounds']} | {share:.0%} "
        f"| {report['verdict']['status']} | {decided} of {len(gating)} | {', '.join(latency)} |",
        flush=True,
    )


def small(folder: Path) -> Path:
    """Make the small benchmark's repository, with a tag for each of its three commits."""
    (folder / "benchmarks").mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "benchmarks" / "bench_small.py").write_text(BENCHMARK)
    for name, turns in (("same", 25), ("unchanged", 25), ("slower", 27)):
        (folder / "library.py").write_text(LIBRARY.format(turns=turns, name=name))
        commit(folder, name)
        git(folder, "tag", name)
    return folder


if __name__ == "__main__":
    main()
