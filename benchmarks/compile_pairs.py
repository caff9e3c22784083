"""Pairs of cold compiles of one commit with itself: what of them is steady enough to decide.

    python benchmarks/compile_pairs.py [--pairs N] [-k CASE]... [--json FILE]

Three of the demo's modules are compiled by Inductor for the CPU. As in a session, one process has
imported torch and forks each worker; the two of a pair compile directly one after the other on
one core, in alternating order, each with an empty cache. Of each case and way to take the time:
mean log ratio of its pairs and their standard deviation in %, how many pairs decide 10 % at that
spread, and whether both workers of each pair generated the same code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "demo" / "base")]

from perfci.stats.t_tests import t_quantile  # noqa: E402

CASES = ("gate", "mixer", "attention")
TIMES: Mapping[str, Callable[[Mapping[str, float]], float]] = {
    "wall": lambda one: one["wall"],
    "wall less a warm call": lambda one: one["wall"] - one["warm"],
    "CPU": lambda one: one["own"] + one["children"],
    "CPU of the process": lambda one: one["own"],
    "CPU of the C++ compiler": lambda one: one["children"],
}
MARGIN, LEVEL, MOST = math.log(1.10), 0.01, 40


def compile_once(case: str, cache: Path) -> dict[str, Any]:
    """Make a case's first call with an empty cache, and say what it cost and generated."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    import torch
    from zoo import Attention, Gate, Mixer

    torch.manual_seed(0)
    model, inputs = {
        "gate": lambda: (Gate(), torch.randn(16, 128)),
        "mixer": lambda: (Mixer(), torch.randn(1, 3, 32, 32)),
        "attention": lambda: (Attention(), torch.randn(1, 128, 128)),
    }[case]()
    call = torch.compile(model.eval())
    with torch.inference_mode():
        before, children, started = _own_s(), _children_s(), time.perf_counter()
        call(inputs)
        wall, own, theirs = (
            time.perf_counter() - started,
            _own_s() - before,
            _children_s() - children,
        )
        warm = []
        for _ in range(21):
            started = time.perf_counter()
            call(inputs)
            warm.append(time.perf_counter() - started)
    from torch._dynamo.utils import counters
    from torch._inductor import metrics

    return {
        "wall": wall,
        "own": own,
        "children": theirs,
        "warm": statistics.median(warm),
        "calls": counters["stats"]["calls_captured"],
        "kernels": metrics.generated_kernel_count,
        "code": _generated(cache),
    }


def _own_s() -> float:
    return time.process_time()


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _generated(cache: Path) -> str:
    """Return a hash of the C++ that Inductor wrote."""
    files = sorted(cache.rglob("*.cpp"), key=lambda file: file.name)
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + file.read_bytes().replace(bytes(cache), b""))
    return f"{len(files)} files, {digest.hexdigest()[:12]}"


def forked(case: str) -> dict[str, Any]:
    """Compile in a worker that is forked here."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as cache:
        if (pid := os.fork()) == 0:
            try:
                os.write(writing, json.dumps(compile_once(case, Path(cache))).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as answer:
            said = answer.read()
        os.waitpid(pid, 0)
    if not said:
        raise SystemExit(f"{case}: its worker failed")
    found: dict[str, Any] = json.loads(said)
    return found


def pairs_that_decide(spread: float) -> str:
    """Return how many pairs of this spread decide a margin of 10 % at 99 %, five at least."""
    for count in range(5, MOST):
        if t_quantile(1.0 - LEVEL / 2.0, count - 1) * spread / math.sqrt(count) < MARGIN:
            return str(count)
    return f"over {MOST}"


def main() -> None:
    """Compile in pairs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("-k", dest="cases", action="append", choices=CASES)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    # as sessions set them
    os.environ |= {
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    }
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import torch

    torch.set_num_threads(1)
    cases = tuple(options.cases or CASES)
    pairs: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {case: [] for case in cases}
    for case in cases:
        forked(case)  # what is read from disk is in memory from now on
    for number in range(options.pairs):
        for case in cases:
            first, second = forked(case), forked(case)
            pairs[case].append((first, second) if number % 2 == 0 else (second, first))
            if options.json:  # as it goes: a compile takes long, and somebody may lose patience
                options.json.write_text(json.dumps(pairs, indent=1) + "\n", encoding="utf-8")
    print("| case | time | median | mean | spread of a pair | pairs that decide 10 % |")
    print("|---|---|--:|--:|--:|--:|")
    for case, measured in pairs.items():
        for name, time_of in TIMES.items():
            _print_row(case, name, [(time_of(one), time_of(other)) for one, other in measured])
    for case, measured in pairs.items():
        said = {(one["calls"], one["kernels"], one["code"]) for pair in measured for one in pair}
        print(f"\n{case}: calls in the graph, kernels, generated C++: {sorted(said)}")


def _print_row(case: str, name: str, measured: list[tuple[float, float]]) -> None:
    changes = [math.log(after / before) for before, after in measured]
    spread = statistics.stdev(changes)
    middle = statistics.median(one for pair in measured for one in pair)
    error = spread / math.sqrt(len(changes))
    print(
        f"| {case} | {name} | {middle:.2f} s | {100 * statistics.mean(changes):+.1f} ± "
        f"{100 * error:.1f} % | {100 * spread:.1f} % | {pairs_that_decide(spread)} |"
    )


if __name__ == "__main__":
    main()
