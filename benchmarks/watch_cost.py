"""What the watch on a side's code costs: a call, an import, a Python child, the last look.

    python benchmarks/watch_cost.py [--rounds 15] [--only-import]

An audit hook can't be removed, so each reading is of a fresh process: one without the watch, one
with it, and one with it and the library that sees from below, in turns of either order. What is
printed are medians, and the medians of the pairs' differences.
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

from perfci.measure.machine.isolation import LooksLibrary, seen_from_below
from perfci.measure.provenance.events import CodePlaces
from perfci.worker.hook.perfci_watch.ownership import VARIABLE

HOOK = Path(__file__).resolve().parent.parent / "perfci" / "worker" / "hook"
MODULES = 500
START = """\
import json, os, sys, time
sys.path.insert(0, {hook!r})
from perfci_watch.watch import begin_in_worker
watch = begin_in_worker(os.environ)
sys.path.insert(0, os.environ["TREE"])
told = {{}}
began = time.perf_counter_ns()
import big
told["import of {modules} modules"] = time.perf_counter_ns() - began
"""
CALLS = """\
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

told["loop of 1000"] = best(loop, 200)
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
    parser.add_argument("--only-import", action="store_true")
    options = parser.parse_args()
    script = START.format(hook=str(HOOK), modules=MODULES)
    if not options.only_import:
        script += CALLS + ("" if options.without_torch else TORCH)
    script += LOOK
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        looks = seen_from_below(folder / "cache", os.environ)
        if looks.why:
            parser.error(looks.why)
        tree = _tree(folder / "tree")
        kinds = {
            "without": {"TREE": str(tree)},
            "with": _environment(tree, LooksLibrary()),
            "from below": _environment(tree, looks),
        }
        readings: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
        for number in range(-1, options.rounds):
            for kind in kinds if number % 2 else reversed(kinds):
                found = _readings(script, kinds[kind], children=not options.only_import)
                if number >= 0:  # the first writes the bytecode
                    readings[kind].append(found)
    columns = (*kinds, "with - without", "from below - without")
    print(f"{'':34}" + "".join(f"{column:>22}" for column in columns))
    for name in readings["without"][0]:
        values = {kind: [one[name] for one in each] for kind, each in readings.items()}
        cells = [_time(median(each)) for each in values.values()]
        for kind in ("with", "from below"):
            pairs = zip(values["without"], values[kind], strict=True)
            less = median(more - plain for plain, more in pairs)
            share = f" ({less / median(values['without']):+.1%})" if name != "the last look" else ""
            cells.append(f"{_time(less)}{share}")
        print(f"{name:34}" + "".join(f"{cell:>22}" for cell in cells))


def _tree(folder: Path) -> Path:
    package = folder / "big"
    package.mkdir(parents=True)
    for number in range(MODULES):
        functions = (f"def f{one}(x):\n    return x + {one}\n" for one in range(8))
        (package / f"part{number}.py").write_text("".join(functions))
    lines = (f"from big import part{number}\n" for number in range(MODULES))
    (package / "__init__.py").write_text("".join(lines))
    return folder


def _readings(script: str, environment: dict[str, str], *, children: bool) -> dict[str, float]:
    env = {**os.environ, **environment, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True
    )
    told: dict[str, float] = json.loads(done.stdout)
    if children:
        child = {**env, **({"PYTHONPATH": str(HOOK)} if VARIABLE in environment else {})}
        starts = []
        for _ in range(10):
            began = time.perf_counter_ns()
            subprocess.run([sys.executable, "-c", "pass"], env=child, check=True)
            starts.append(time.perf_counter_ns() - began)
        told["a Python child, start to end"] = min(starts)
    return told


def _environment(tree: Path, looks: LooksLibrary) -> dict[str, str]:
    """Return what a worker of that tree has, and an empty file of events."""
    events = tree.parent / "events"
    events.write_bytes(b"")
    places = CodePlaces(
        root=str(tree),
        checkout=f"{tree}-checkout/",
        cache=f"{tree}-cache/",
        own=(f"{tree}/",),
        spared=(),
        python_path=(str(tree),),
    )
    settings = {VARIABLE: places.settings(str(events)), "TREE": str(tree)}
    return settings | looks.preloaded(os.environ)


def _time(ns: float) -> str:
    return f"{ns / 1e6:.2f} ms" if abs(ns) >= 1e5 else f"{ns:.1f} ns"


if __name__ == "__main__":
    main()
