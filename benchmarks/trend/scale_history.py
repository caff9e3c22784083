"""Builds a history of a given size through perfci's own recording, and measures loading it.

    python benchmarks/trend/scale_history.py history.sqlite --series 16000 --points 365

The PyTorch HUD's daily report is of this size. Cases are measured on four machines, eight metrics
each; values are AR(1) noise around a level, and one series in twenty moves by 3 to 20 % at a
random night. Workers' own values are there for the newest nights only, unless all are asked for.
Loading is measured in a fresh process: its time, and its high-water mark of memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import numpy as np

from perfci.baselines.store import make_environment
from perfci.history.store import open_history
from perfci.metrics import METRICS
from perfci.model.run import Point, RecordedRun

DEVICES = ("NVIDIA H100", "NVIDIA A100", "NVIDIA L4", "")
NAMES = (
    "latency_p50",
    "latency_p95",
    "device_time_p50",
    "cold_start",
    "compile_time",
    "compile_time_cached",
    "peak_device_memory",
    "peak_host_memory",
)
BEGIN = datetime(2025, 3, 1, 2, tzinfo=UTC)
WORKERS = 5
NIGHTS_WITH_WORKERS = 10


def values(series: int, points: int, rng: np.random.Generator) -> np.ndarray:
    """Return (series, points) values: log-normal AR(1) noise, ρ from 0 to 0.6, some with a step."""
    rho = rng.uniform(0.0, 0.6, series)
    noise = rng.normal(0.0, 0.01, (series, points))
    for night in range(1, points):
        noise[:, night] += rho * noise[:, night - 1]
    moved = rng.random(series) < 0.05
    size = rng.uniform(0.03, 0.2, series) * rng.choice((-1, 1), series) * moved
    where = rng.integers(points // 6, points, series)
    steps = (np.arange(points) >= where[:, None]) * size[:, None]
    level = rng.uniform(np.log(1e-3), np.log(1.0), series)
    return np.exp(level[:, None] + noise + steps)


def nights(
    series: int, points: int, told: int, seed: int, only: range | None = None
) -> Iterator[RecordedRun]:
    """Yield each night's run of each machine; the last ``told`` nights with workers' values.

    With ``only`` those nights alone, the same ones.
    """
    rng = np.random.default_rng(seed)
    per_machine = series // len(DEVICES)
    cases = [f"model_{number // 4}[batch={4 ** (number % 4)}]" for number in range(per_machine)]
    names = [
        (cases[index // len(NAMES)], NAMES[index % len(NAMES)]) for index in range(per_machine)
    ]
    machines = [
        make_environment(
            {"system": "linux", "machine": "x86_64", "device_name": device, "torch": "2.9.0"}
            | {"python": "3.12.3"}
        )
        for device in DEVICES
    ]
    all_values = [values(per_machine, points, rng) for _ in DEVICES]
    for night in range(points):
        moment = BEGIN + timedelta(days=night)
        spread = rng.normal(1.0, 0.01, (per_machine, WORKERS))
        if only is not None and night not in only:
            continue
        with_workers = night >= points - told
        for machine, level in zip(machines, all_values, strict=True):
            yield RecordedRun(
                id=f"{machine.key}-{night:05}",
                source="nightly",
                sha=f"{night:040x}",
                subject=f"Change number {night}",
                branch="main",
                committed_at=(moment - timedelta(hours=3)).isoformat(),
                measured_at=moment.isoformat(),
                position=night,
                environment=machine,
                runner=machine.facts["device_name"] or "cpu",
                points=tuple(
                    Point(
                        case,
                        metric,
                        METRICS[metric].unit,
                        float(level[index, night]),
                        tuple((level[index, night] * spread[index]).tolist())
                        if with_workers
                        else (),
                    )
                    for index, (case, metric) in enumerate(names)
                ),
                source_hashes=dict.fromkeys(cases[: -(-per_machine // len(NAMES))], "1f2e3d"),
            )


def build(
    where: str, series: int, points: int, told: int, *, seed: int = 0, only: range | None = None
) -> dict[str, float]:
    """Record everything; return the time in ``History.record`` in all, and a night of a machine."""
    runs = nights(series, points, told, seed, only)
    spent = spent_cpu = 0.0
    with open_history(where) as history:
        while some := list(islice(runs, 20)):
            started, started_cpu = time.perf_counter(), time.process_time()
            history.record(some)
            spent += time.perf_counter() - started
            spent_cpu += time.process_time() - started_cpu
        size = history.statistics().size
    return {
        "record_s": spent,
        "record_cpu_s": spent_cpu,
        "record_a_run_s": spent / (len(only or range(points)) * len(DEVICES)),
        "mib": size / 2**20,
    }


def load(where: str) -> dict[str, float]:
    """Load everything here; return the time and this process's high-water mark."""
    started, started_cpu = time.perf_counter(), time.process_time()
    with open_history(where, create=False) as history:
        loaded = history.load_arrays()
    return {
        "load_s": time.perf_counter() - started,
        "load_cpu_s": time.process_time() - started_cpu,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "series": len(loaded.series),
        "points": sum(len(one.values) for one in loaded.series),
        "runs": len(loaded.runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("where", help="a file that isn't there yet, or a postgresql:// address")
    parser.add_argument("--series", type=int, default=16_000, help="a multiple of 4")
    parser.add_argument("--points", type=int, default=365)
    parser.add_argument("--nights-with-workers", type=int, default=NIGHTS_WITH_WORKERS)
    parser.add_argument("--only-build", action="store_true")
    parser.add_argument("--only-load", action="store_true")
    given = parser.parse_args()
    if given.only_load:
        print(json.dumps(load(given.where)))
        return
    if "://" not in given.where and Path(given.where).exists():
        parser.error(f"{given.where} is there already")
    print(
        json.dumps(build(given.where, given.series, given.points, given.nights_with_workers)),
        flush=True,
    )
    if not given.only_build:
        subprocess.run([sys.executable, __file__, given.where, "--only-load"], check=True)


if __name__ == "__main__":
    main()
