"""How long `perfci history import` takes for a large folder of asv's results.

    python benchmarks/trend/import_scale.py --runs 1433

Writes such a folder, of 284 benchmarks with 1,800 combinations of their parameters in all, as asv
0.6 writes it (that is not measured), and imports it in a fresh process. Told are its wall time, its
processor time and its high-water mark of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BENCHMARKS = 284
COMBINATIONS = (1, 2, 4, 8, 16)
BEGIN_MS = 1_500_000_000_000
DAY_MS = 86_400_000
COLUMNS = (
    *("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"),
    *("stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile"),
)


def write_folder(folder: Path, runs: int, rng: np.random.Generator) -> int:
    """Write asv's results of ``runs`` commits; return the size of all files in bytes."""
    machine = folder / "machine"
    machine.mkdir(parents=True)
    (machine / "machine.json").write_text(json.dumps({"machine": "machine", "version": 1}))
    names = [f"module_{at % 20}.Suite{at % 60}.time_{at}" for at in range(BENCHMARKS)]
    params = [_params(COMBINATIONS[at % len(COMBINATIONS)]) for at in range(BENCHMARKS)]
    described = {
        name: {"name": name, "type": "time", "unit": "seconds", "version": "1f2e3d"}
        | {"param_names": [f"axis{axis}" for axis in range(len(own))], "params": own}
        for name, own in zip(names, params, strict=True)
    }
    (folder / "benchmarks.json").write_text(json.dumps({**described, "version": 2}))
    for run in range(runs):
        moment = BEGIN_MS + run * DAY_MS
        results = {name: _row(own, moment, rng) for name, own in zip(names, params, strict=True)}
        content = {
            "commit_hash": f"{run:040x}",
            "env_name": "virtualenv-py3.11",
            "date": moment,
            "params": {"machine": "machine", "python": "3.11"},
            "python": "3.11",
            "requirements": {},
            "env_vars": {},
            "result_columns": COLUMNS,
            "results": results,
            "durations": {},
            "version": 2,
        }
        (machine / f"{run:08x}-virtualenv-py3.11.json").write_text(json.dumps(content))
    return sum(file.stat().st_size for file in folder.rglob("*.json"))


def _params(combinations: int) -> list[list[str]]:
    """Return axes of two values each."""
    return [["'small'", "'large'"]] * (combinations.bit_length() - 1)


def _row(params: list[list[str]], moment: int, rng: np.random.Generator) -> list[object]:
    count = 2 ** len(params)
    values = (1e-3 * np.exp(rng.normal(0.0, 0.01, count))).tolist()
    some = [values] * 4
    return [values, params, "1f2e3d", moment, 1.5, *some, [1000] * count, [10] * count]


def measure(folder: Path, place: Path) -> dict[str, float]:
    """Import ``folder`` in a fresh process."""
    command = (sys.executable, "-m", "perfci", "history", "import", str(folder))
    started = time.perf_counter()
    process = subprocess.Popen([*command, "--history", str(place)], cwd=place.parent)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(1)
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "peak_mib": round(used.ru_maxrss / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1433)
    parser.add_argument("--keep", type=Path, help="write the folder here, or use the one there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch) / "results"
        if not folder.exists():
            size = write_folder(folder, given.runs, np.random.default_rng(0))
            print(f"{size / 1e6:.0f} MB", flush=True)
        print(json.dumps(measure(folder.absolute(), Path(scratch) / "history.sqlite")))


if __name__ == "__main__":
    main()
