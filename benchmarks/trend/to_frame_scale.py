"""How long a notebook waits for a history of a large team: `perfci.load(...).to_frame()`.

    python benchmarks/trend/to_frame_scale.py --keep history.sqlite

Builds a history as `scale_history.py` does (16,000 series of 365 points; that is not measured), or
takes the one that is kept. Loading and the frame are measured in a fresh process each time: wall
time, processor time, and the process's high-water mark of memory. The best of `--repeats` is shown:
whatever else the machine does only adds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measure(history: str) -> dict[str, float]:
    """Load ``history`` and make its frame here; return what both took."""
    import perfci

    began, began_cpu = time.perf_counter(), time.process_time()
    loaded = perfci.load(history)
    loaded_at = time.perf_counter()
    frame = loaded.to_frame()
    ended = time.perf_counter()
    return {
        "rows": len(frame),
        "load_s": round(loaded_at - began, 2),
        "to_frame_s": round(ended - loaded_at, 2),
        "both_s": round(ended - began, 2),
        "cpu_s": round(time.process_time() - began_cpu, 2),
        "frame_mib": round(frame.memory_usage(deep=False).sum() / 2**20),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=16_000, help="a multiple of 4")
    parser.add_argument("--points", type=int, default=365)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="keep the history here, or take the one there")
    parser.add_argument("--measure", metavar="HISTORY", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        history = given.keep or Path(scratch) / "history.sqlite"
        if not history.exists():
            from benchmarks.trend.scale_history import build

            build(str(history), given.series, given.points, told=10)
        command = [sys.executable, __file__, "--measure", str(history)]
        found = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(given.repeats)
        ]
    print(json.dumps(min(found, key=lambda one: one["both_s"]), indent=1))


if __name__ == "__main__":
    main()
