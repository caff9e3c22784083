"""The whole path at the size of a large team: from the history's file to the written site.

    python benchmarks/trend/scale.py --json scale.json

For each number of series a history is recorded (that is not measured here; workers' own values are
in the nights of which the site shows them). Then `perfci trend` runs as its users run it, in a
fresh process on two cores, and writes the site, the Markdown and the JSON. With `--increment` that
is done twice: the day before the last night, into a new folder, and after it, into the same one.
Told are its wall time; the processor time of all its processes, which a busy machine does not
lengthen; the largest sum of their resident memory, looked at ten times a second (pages that two of
them share count twice); and the sizes of what it wrote.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.trend.scale_history import build
from perfci.commands.trend import RUNS_WITH_WORKERS

SIZES = (1_000, 10_000, 100_000)
POINTS = 365
LOOK_EVERY_S = 0.1


def measure(history: Path, folder: Path, cores: int) -> dict[str, float]:
    """Run ``perfci trend`` on ``history`` and return what it took and made."""
    site, told, markdown = folder / "site", folder / "trend.json", folder / "trend.md"
    command = [
        *(sys.executable, "-m", "perfci", "trend", "--history", str(history), "--no-remember"),
        *("--html", str(site), "--json", str(told), "--markdown", str(markdown)),
    ]
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(own)[:cores])  # its processes get what this one has
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        peak = 0
        spent: dict[int, float] = {}
        while process.poll() is None:
            resident, processor = look_at(psutil.Process(process.pid))
            peak, spent = max(peak, resident), spent | processor
            time.sleep(LOOK_EVERY_S)
        seconds = time.perf_counter() - started
    os.sched_setaffinity(0, own)
    if process.returncode:
        raise SystemExit(process.returncode)
    trend = json.loads(told.read_bytes())
    return {
        "series": len(trend["series"]),
        "changes": len(trend["changes"]),
        "seconds": round(seconds, 1),
        "processor_s": round(sum(spent.values()), 1),
        "peak_mib": round(peak / 2**20),
        "first_page_kib": round(first_page(site) / 1024),
        "largest_page_kib": round(largest_page(site) / 1024),
        "site_mib": round(sum(one.stat().st_size for one in site.rglob("*.*")) / 2**20, 1),
    }


def add_nights(history: Path, series: int, points: int, nights: range) -> None:
    """Record some of the ``points`` nights; the newest ones with workers' own values."""
    build(str(history), series, points, told=RUNS_WITH_WORKERS, only=nights)


def look_at(process: psutil.Process) -> tuple[int, dict[int, float]]:
    """Return the resident bytes of a process and all below it, and each one's processor time."""
    resident, spent = 0, {}
    try:
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess), one.oneshot():
                resident += one.memory_info().rss
                times = one.cpu_times()
                spent[one.pid] = times.user + times.system
    except psutil.NoSuchProcess:
        pass  # ended since it was looked for
    return resident, spent


def first_page(site: Path) -> int:
    """Return what the overview loads before anything is searched or unfolded, in bytes."""
    page, search = site / "index.html", site / "data" / "search.js"
    named = re.findall(r'(?:src|href)="(assets/[^"]+)"', page.read_text(encoding="utf-8"))
    own_accord = re.search(
        r"OWN_ACCORD = ([\d_]+)", (site / "assets" / "overview.js").read_text(encoding="utf-8")
    )
    assert own_accord
    files = [page, *(site / name for name in set(named))]
    if search.stat().st_size <= int(own_accord[1]):
        files.append(search)
    return sum(file.stat().st_size for file in files)


def largest_page(site: Path) -> int:
    """Return what the largest benchmark page loads when all of it is scrolled through, in bytes."""
    timelines = sum(file.stat().st_size for file in (site / "data").glob("timeline-*.js"))
    assets = sum(file.stat().st_size for file in (site / "assets").iterdir())
    pages = [
        page.stat().st_size
        + sum(file.stat().st_size for file in (site / "data").glob(f"{page.stem}.*js"))
        for page in (site / "benchmarks").iterdir()
    ]
    return max(pages) + timelines + assets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="multiples of 4")
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="keep the histories here, and use those there")
    parser.add_argument("--increment", action="store_true", help="measure the last night's report")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        kept = given.keep or Path(scratch)
        kept.mkdir(parents=True, exist_ok=True)
        for series in given.sizes:
            last = given.points - 1 if given.increment else given.points
            history = kept / f"{series}x{last}-of-{given.points}.sqlite"
            if not history.exists():
                add_nights(history, series, given.points, range(last))
            folder = Path(scratch) / str(series)
            folder.mkdir()
            if given.increment:
                history = shutil.copy(history, folder / "history.sqlite")
            rows.append(measure(history.absolute(), folder, given.cores))
            print(json.dumps(rows[-1]), flush=True)
            if given.increment:
                add_nights(history, series, given.points, range(last, given.points))
                rows.append({"increment": 1} | measure(history, folder, given.cores))
                print(json.dumps(rows[-1]), flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
