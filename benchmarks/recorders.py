"""Sixteen recorders on four simulated nodes write into one PostgreSQL, and one node is lost.

    python benchmarks/recorders.py

A node is a group of processes with folders of its own, so that no lock file is shared; all of
one node's are killed at once in mid-write and started again. Two recorders of different nodes have
each run. Says how many runs are there, how many are wrong or double, and how long it took.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from perfci.history.store import open_history
from tests.builders.recorded import in_order, recorded
from tests.history.postgres import binaries, server

NODES, EACH, RUNS = 4, 4, 320
KILLED_AT = RUNS // 4
"""So many runs are there when the node is lost."""


def start(place: str, folder: Path, node: int, number: int) -> subprocess.Popen[bytes]:
    """Start a recorder: of half the runs of the next node's one, too."""
    share = RUNS // (NODES * EACH)
    first = number * share
    own = folder / f"node-{node}"
    own.mkdir(exist_ok=True)
    names = ("HOME", "TMPDIR", "PERFCI_CACHE_DIR", "XDG_DATA_HOME")
    last = min(RUNS, first + share + share // 2)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.history.writer", place, str(first), str(last), "0"],
        env=os.environ | dict.fromkeys(names, str(own)),
    )


def main() -> int:
    """Record, lose a node, go on, and count."""
    bin_folder = binaries()
    if bin_folder is None:
        print("PostgreSQL's initdb, pg_ctl and postgres are not installed")
        return 1
    with server(bin_folder) as running, tempfile.TemporaryDirectory() as name:
        place, folder = running.database("recorders"), Path(name)
        with open_history(place):
            pass
        began = time.monotonic()
        # numbers go round the nodes, so that neighbours in numbers are on different ones
        at = {number: number % NODES for number in range(NODES * EACH)}
        processes = {number: start(place, folder, node, number) for number, node in at.items()}
        with open_history(place) as history:
            while (there := len(list(history.runs()))) < KILLED_AT:
                time.sleep(0.05)
        lost = [number for number, node in at.items() if node == 1]
        killed = sum(processes[number].poll() is None for number in lost)
        for number in lost:
            processes[number].kill()
        for number in lost:
            processes[number].wait()
            processes[number] = start(place, folder, 1, number)
        codes = [process.wait() for process in processes.values()]
        took = time.monotonic() - began
        with open_history(place) as history:
            found = sorted(
                (in_order(run) for run in history.recorded_runs()), key=lambda run: run.id
            )
        wanted = [in_order(recorded(number, cases=3)) for number in range(RUNS)]
    wrong = sum(one != other for one, other in zip(found, wanted, strict=False))
    print(
        f"{len(processes)} recorders on {NODES} nodes, {killed} killed with {there} runs written: "
        f"{len(found)} of {RUNS} runs are there, {wrong} wrong, {len(set(codes)) - 1} exit codes "
        f"besides 0, {took:.1f} s"
    )
    return int(found != wanted or set(codes) != {0})


if __name__ == "__main__":
    sys.exit(main())
