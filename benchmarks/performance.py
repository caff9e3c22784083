"""Costs of perfci itself, as ratios within one run. docs/results/performance.md has the figures.

    python benchmarks/performance.py [NAME …]

Nothing else should run meanwhile. Each goal is printed beside its figure.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))


def timing_loop() -> dict[str, float | str]:
    """Cost of a sample of an empty call, beside a bare pair of clock readings around it."""
    from perfci.worker.calls import burst

    def nothing() -> None:
        return None

    def bare(count: int) -> int:
        spent = perf_counter_ns()
        for _ in range(count):
            perf_counter_ns()
            nothing()
            perf_counter_ns()
        return perf_counter_ns() - spent

    added = []
    for _ in range(30):
        samples = array("q")
        started = perf_counter_ns()
        burst(nothing, samples, sys.maxsize, seconds=0.02)
        looped = (perf_counter_ns() - started) / len(samples)
        added.append(looped - bare(len(samples)) / len(samples))
    return {"added_ns": statistics.median(added), "goal": "at most 300 ns a sample"}


def help_start() -> dict[str, float | str]:
    """``perfci --help`` beside ``python -c pass``, in turn."""
    perfci = str(Path(sys.executable).with_name("perfci"))
    commands = {"help": [perfci, "--help"], "pass": [sys.executable, "-c", "pass"]}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    ratios, helps = [], []
    for number in range(21):
        took = {}
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
            took[name] = time.perf_counter() - started
        if number:  # the first writes .pyc files
            ratios.append(took["help"] / took["pass"])
            helps.append(took["help"])
    return {
        "ratio": statistics.median(ratios),
        "help_s": statistics.median(helps),
        "goal": "at most 5 times",
    }


def demo_compare() -> dict[str, float | str]:
    """The demo's four eager cases: wall time, the share of it in bursts, the parent's memory."""
    from demo import build

    with tempfile.TemporaryDirectory() as scratch:
        repository = build(Path(scratch) / "demo")
        out = Path(scratch) / "report.json"
        command = [sys.executable, "-m", "perfci", "compare", "main", "feature", "--quiet"]
        started = time.perf_counter()
        process = subprocess.Popen(
            [*command, "-k", "attention or mixer", "--json", str(out)],
            cwd=repository,
            stdout=subprocess.DEVNULL,
        )
        peak = [0]
        watcher = threading.Thread(target=_watch, args=(process.pid, peak))
        watcher.start()
        process.wait()
        wall = time.perf_counter() - started
        watcher.join()
        report = json.loads(out.read_text())
    timing = report["timing"]
    return {
        "wall_s": wall,
        "measured_s": timing["measured_s"],
        "measured_share": timing["measured_s"] / wall,
        "rounds": timing["rounds"],
        "verdict": report["verdict"]["status"],
        "parent_peak_mib": peak[0] / 1024,
        "goal": "within 90 s on 2 cores; the parent under 200 MB",
    }


def _watch(pid: int, peak: list[int]) -> None:
    """Read the parent's own high-water mark (VmHWM, KiB) until it ends."""
    status = Path(f"/proc/{pid}/status")
    while True:
        try:
            text = status.read_text(encoding="ascii")
        except (FileNotFoundError, ProcessLookupError):
            return
        for line in text.splitlines():
            if line.startswith("VmHWM:"):
                peak[0] = max(peak[0], int(line.split()[1]))
        if "State:\tZ" in text:
            return
        time.sleep(0.1)


MEASUREMENTS: dict[str, Callable[[], dict[str, float | str]]] = {
    "timing_loop": timing_loop,
    "help_start": help_start,
    "demo_compare": demo_compare,
}


def main() -> None:
    """Run the measurements and print them as JSON."""
    for name in sys.argv[1:] or MEASUREMENTS:
        print(json.dumps({name: MEASUREMENTS[name]()}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
