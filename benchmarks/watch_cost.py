"""What the watch on a side's code costs: a call, the start of a Python child, the last look.

    python benchmarks/watch_cost.py [--rounds 15]

An audit hook can't be removed, so each reading is of a fresh process, one without the watch and one
with it in turn. What is printed are medians, and the median of the pairs' differences.
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
from statistics import median

from perfci.measure.provenance.places import Places
from perfci.worker.hook.perfci_watch.ownership import VARIABLE

HOOK = Path(__file__).resolve().parent.parent / "perfci" / "worker" / "hook"
CALLS = """\
import json, os, sys, time
sys.path.insert(0, {hook!r})
from perfci_watch.watch import begin_in_worker
watch = begin_in_worker(os.environ)

def best(call, number):
    found = []
    for _ in range(30):
        began = time.perf_counter_ns()
        for _ in range(number):
            call()
        found.append((time.perf_counter_ns() - began) / number)
    return min(found)

def loop():
    for _ in range(1000):
        pass

told = {{"loop of 1000": best(loop, 200)}}
told["id(x), an audit event"] = best(lambda: id(loop), 20000)
"""
TORCH = """\
began = time.perf_counter_ns()
import torch
told["import torch"] = time.perf_counter_ns() - began
torch.set_num_threads(1)
layer, x = torch.nn.Linear(64, 64), torch.randn(8, 64)
with torch.no_grad():
    told["torch eager: Linear(64, 64)"] = best(lambda: layer(x), 500)
"""
LOOK = """\
began = time.perf_counter_ns()
if watch:
    watch.look()
told["the last look"] = time.perf_counter_ns() - began
print(json.dumps(told))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--without-torch", action="store_true")
    options = parser.parse_args()
    script = CALLS.format(hook=str(HOOK))
    script += ("" if options.without_torch else TORCH) + LOOK
    plain: dict[str, list[float]] = {}
    watched: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for into, environment in ((plain, {}), (watched, _environment(folder))):
                for name, value in _readings(script, environment).items():
                    into.setdefault(name, []).append(value)
    print(f"{'':32}{'without':>14}{'with':>14}{'difference':>14}")
    for name, values in plain.items():
        pairs = [b - a for a, b in zip(values, watched[name], strict=True)]
        cells = (median(values), median(watched[name]), median(pairs))
        print(f"{name:32}" + "".join(f"{_time(cell):>14}" for cell in cells))


def _readings(script: str, environment: dict[str, str]) -> dict[str, float]:
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True
    )
    told: dict[str, float] = json.loads(done.stdout)
    child = {**env, **({"PYTHONPATH": str(HOOK)} if environment else {})}
    starts = []
    for _ in range(10):
        began = time.perf_counter_ns()
        subprocess.run([sys.executable, "-c", "pass"], env=child, check=True)
        starts.append(time.perf_counter_ns() - began)
    told["a Python child, start to end"] = min(starts)
    return told


def _environment(folder: str) -> dict[str, str]:
    tree = f"{folder}/"
    places = Places(
        root=folder,
        checkout=f"{folder}-checkout/",
        cache=f"{folder}-cache/",
        own=(tree,),
        spared=(),
        python_path=(folder,),
    )
    Path(folder, "events").touch()
    return {VARIABLE: places.settings(f"{folder}/events")}


def _time(ns: float) -> str:
    return f"{ns / 1e6:.2f} ms" if abs(ns) >= 1e5 else f"{ns:.1f} ns"


if __name__ == "__main__":
    main()
