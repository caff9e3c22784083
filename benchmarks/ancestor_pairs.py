"""Pairs of one commit with itself: forked from one ancestor, beside an idle core or not, or apart.

    python benchmarks/ancestor_pairs.py [--rounds N] [--repetitions N] [--way WAY]... [-k KERNEL]

Ways: ``prepared`` (the default: the next ancestor imports on the parent's cores meanwhile),
``unprepared``, ``starters`` (one of each side), ``beside another`` (while a pair measures, one more
is forked, set up and warmed up on the parent's cores, as the next one could be). For each kernel
the mean log ratio of its pairs with its standard error, their standard deviation, and the mean by
which side was forked first: a side that paid for copied pages would show there, most of all in what
is bound by memory.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.observed import be_session, is_session, outputs_of, pairs_of, show
from perfci.model.measuring import WorkerOutput
from perfci.verdict.sampled_comparisons import pair_values

WAYS = ("prepared", "unprepared", "starters", "beside another")
METRICS = ("latency_p50", "cold_start", "import_time")
KERNELS = """\
import torch
import perfci


@perfci.benchmark(metrics=["latency_p50", "cold_start", "import_time"])
def tiny_op():
    x = torch.ones(8)
    return lambda: x + x


@perfci.benchmark(metrics=["latency_p50", "cold_start", "import_time"])
def add_16_mib():
    x, y, out = (torch.ones(4 << 20) for _ in range(3))
    return lambda: torch.add(x, y, out=out)


@perfci.benchmark(metrics=["latency_p50", "cold_start", "import_time"])
def buffers_16_of_256_kib():
    several = [torch.ones(64 << 10) for _ in range(16)]
    return lambda: [one.add_(1.0) for one in several]
"""
CONFIGURATION = """\
[tool.perfci]
rounds = {rounds}
max_rounds = {rounds}
round_time = 0.2
budget = "600s"
"""


def repository(folder: Path, rounds: int) -> Path:
    """Make a repository of the kernels, with one commit."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "bench_kernels.py").write_text(KERNELS, encoding="utf-8")
    (folder / "pyproject.toml").write_text(CONFIGURATION.format(rounds=rounds), encoding="utf-8")
    identity = ["-c", "user.name=perfci", "-c", "user.email=perfci@example.invalid"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "Kernels"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def run_session(way: str) -> None:
    """Be a session whose workers are forked in this way."""
    from perfci.measure import starters
    from perfci.model.finding import finding

    if way == "unprepared":
        starters.Starters._prepare = lambda *_: None  # type: ignore[method-assign]
    if way == "beside another":
        warm_another_beside()
    if way == "starters":
        starters.preload_of = lambda *_: finding("ancestor-python")
    be_session()


def warm_another_beside() -> None:
    """Have one more pair warm up on the parent's cores while each pair measures."""
    from perfci.measure.round import _RoundWorkers

    measure = _RoundWorkers._blocks

    def beside(turns: _RoundWorkers) -> None:
        with ExitStack() as stack:
            for slot in turns.slots:
                assert turns.forking is not None
                starter = turns.forking.by_side[slot.task.order.side]
                worker = starter.fork(
                    slot.task.order, slot.task.environment, budget_end=turns.budget_end, turns=-1
                )
                other = stack.enter_context(closing(worker))
                os.sched_setaffinity(other.pid, os.sched_getaffinity(0))
            measure(turns)

    _RoundWorkers._blocks = beside  # type: ignore[assignment, method-assign]


def changes_of(outputs: Sequence[WorkerOutput]) -> list[dict[str, Any]]:
    """Return the log ratio of each pair, by case and metric."""
    changes = []
    for metric in METRICS:
        for case, pairs in pairs_of(outputs, [metric]).items():
            for base, head in pairs:
                before, after = pair_values(base, head, metric)
                first = "base" if base.round % 2 else "head"
                change = math.log(after / before)
                changes.append({"case": case, "metric": metric, "first": first, "change": change})
    return changes


def summary(pairs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return mean, its standard error and the spread by kernel and metric, in percent."""
    rows = {}
    for case, metric in sorted({(one["case"], one["metric"]) for one in pairs}):
        mine = [one for one in pairs if (one["case"], one["metric"]) == (case, metric)]
        changes = [100.0 * one["change"] for one in mine]
        spread = statistics.stdev(changes) if len(changes) > 1 else math.nan
        first = {
            side: statistics.mean([100.0 * one["change"] for one in mine if one["first"] == side])
            for side in sorted({one["first"] for one in mine})
        }
        rows[f"{case} {metric}"] = {
            "pairs": len(changes),
            "mean": round(statistics.mean(changes), 3),
            "median": round(statistics.median(changes), 3),
            "standard_error": round(spread / math.sqrt(len(changes)), 3),
            "spread": round(spread, 3),
            "mean_by_first": {side: round(value, 3) for side, value in first.items()},
        }
    return rows


def main() -> int:
    """Run the ways in turn and print their pairs' summaries, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("-k", dest="kernels", default="", help="as perfci compare's -k")
    options = parser.parse_args()
    ways = tuple(options.way or WAYS)
    pairs: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        folder = repository(Path(scratch) / "kernels", options.rounds)
        for number in range(options.repetitions):
            for way in ways if number % 2 == 0 else reversed(ways):
                outputs = outputs_of(
                    __file__,
                    folder,
                    way,
                    *(
                        "compare",
                        "HEAD",
                        "HEAD",
                        "--allow-same-commit",
                        "--measure-same-code",
                        "--quiet",
                    ),
                    *(["-k", options.kernels] if options.kernels else []),
                )
                pairs[way] += changes_of(outputs)
    found = {"load_before": load, **{way: summary(pairs[way]) for way in ways}}
    show(found, options.json)
    return 0


if __name__ == "__main__":
    if is_session():
        run_session(sys.argv[2])
    else:
        raise SystemExit(main())
