"""What a large model's rounds take: wall and CPU time, and the most memory of all at once.

    python benchmarks/large_model.py [--mib 256] [--rounds 2]

A stack of linear layers with so many MiB of float32 parameters, compared with itself.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

BENCHMARK = """
import perfci
import torch

WIDTH = 2048


@perfci.benchmark
def stack():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range({layers})]
    return perfci.inference(torch.nn.Sequential(*layers), torch.randn(4, WIDTH))
"""


def main() -> int:
    """Print what it took, and what accuracy said."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        written(folder, layers=max(1, chosen.mib // 16))
        begun = time.monotonic()
        process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "perfci",
                    "compare",
                    "HEAD",
                    "HEAD",
                    "--allow-same-commit",
                    "--measure-same-code",
                ),
                *("--rounds", str(chosen.rounds), "--no-why", "--quiet", "--json", "report.json"),
            ],
            cwd=folder,
            env={**os.environ, "PERFCI_CACHE_DIR": str(Path(name) / "cache")},
        )
        peak = Peak(process.pid)
        process.wait()
        wall_s, most = time.monotonic() - begun, peak.end()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = json.loads((folder / "report.json").read_text())
    share = report["timing"]["measured_s"] / report["timing"]["wall_s"]
    print(
        f"{chosen.mib} MiB, {report['timing']['rounds']} rounds: {wall_s:.1f} s, {share:.0%} of it "
        f"measuring, {used.ru_utime + used.ru_stime:.1f} s of CPU, {most / 2**30:.2f} GiB at most"
    )
    for row in report["results"]:
        if row["metric"] == "accuracy_loss":
            print(f"accuracy_loss: {row['base']['center']} and {row['head']['center']}")
    for metric, why in report["not_measured"].items():
        if metric == "accuracy_loss":
            print(f"accuracy_loss: not measured: {why}")
    return process.returncode


def written(folder: Path, layers: int) -> None:
    """Make a repository with the benchmark."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "bench_stack.py").write_text(BENCHMARK.format(layers=layers))
    (folder / "pyproject.toml").write_text('[tool.perfci]\ntimeout = "10m"\n')
    identity = ("-c", "user.name=B", "-c", "user.email=b@example.invalid")
    for command in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "stack")):
        subprocess.run(["git", *command], cwd=folder, check=True)


class Peak:
    """Watches the memory of a process and all its children, shared pages counted once."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._most = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def end(self) -> int:
        """Return the most bytes."""
        self._ended.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            self._most = max(self._most, self._now())

    def _now(self) -> int:
        total = 0
        try:
            every = [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            return 0
        for one in every:
            try:
                total += one.memory_full_info().pss
            except psutil.Error:
                continue
        return total


if __name__ == "__main__":
    raise SystemExit(main())
