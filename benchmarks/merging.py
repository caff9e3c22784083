"""What merging many shards' reports costs: processor time and peak memory, by the number of shards.

    python benchmarks/merging.py [--shards 250 2000]

Each shard has two cases of ten metrics, measured alike. `perfci merge` runs
as a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = 2
METRICS = (
    "latency_p50", "latency_p95", "latency_mean", "latency_sd", "latency_max", "cold_start",
    "import_time", "compile_time", "peak_host_memory", "throughput",
)  # fmt: skip


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, nargs="+", default=[250, 500, 1000, 2000])
    options = parser.parse_args()
    print("| shards | of each | processor time | peak memory |")
    print("|--:|--:|--:|--:|")
    for count in options.shards:
        with tempfile.TemporaryDirectory() as folder:
            files = written(Path(folder), count)
            spent = usage_of(files, Path(folder))
            print(
                f"| {count:,} | {files[0].stat().st_size / 1024:.0f} KiB | {spent[0]:.1f} s "
                f"| {spent[1] / 1024:.0f} MiB |",
                flush=True,
            )


def written(folder: Path, count: int) -> list[Path]:
    """Write the reports of ``count`` shards, made of one report that perfci itself renders."""
    sys.path.insert(0, str(ROOT))
    from perfci.report.exporters.json import render
    from tests.verdict.shards import paired, shard

    rows = [paired("CASE-0", metric=name) for name in METRICS]
    rows += [paired("CASE-1", metric=name) for name in METRICS]
    text = str(render(shard(1, count, *rows)))
    files = []
    for number in range(1, count + 1):
        named = text
        for case in range(CASES):
            named = named.replace(f"CASE-{case}", f"layer[shard={number},case={case}]")
        named = named.replace(f'"shard": "1/{count}"', f'"shard": "{number}/{count}"')
        assert json.loads(named)["shard"] == f"{number}/{count}"
        files.append(folder / f"{number}.json")
        files[-1].write_text(named, encoding="utf-8")
    return files


def usage_of(files: list[Path], folder: Path) -> tuple[float, int]:
    """Return the processor time in s, and the peak of memory in KiB, of merging ``files``."""
    command = [sys.executable, "-m", "perfci", "merge", *map(str, files)]
    command += ["--expect", str(len(files)), "--json", str(folder / "merged.json")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"merge failed: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


if __name__ == "__main__":
    main()
