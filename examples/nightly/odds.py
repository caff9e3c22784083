"""How often the demo's report would be right: other seeds, and measured nights that are off.

    python examples/nightly/odds.py [SEEDS]

The same commits and the same noise model as in the demo. The five nights that the demo measures
are made as well, each off by a normal amount with the standard deviation that is printed.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from math import exp
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from nightly.commits import COMMITS, loops, near
from nightly.replay import SPREAD, replayed
from nightly_demo import EARLIER, NEWEST

from perfci.measure.checkout.commits import Commit
from perfci.model.run import Environment, Point, RecordedRun, RunHeader
from perfci.trend import Change, Series, SeriesKey, Timeline
from perfci.trend.changes import analyse

CASES = ("tokenise", "encode", "parse")
NOW = "2026-03-02T00:00:00+00:00"
LOOP_S = 4e-8


def main() -> None:
    """Print the odds for quiet and for busy machines."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("measured nights off by   both named   step   ramp   parse named")
    for off in (0.0, 0.03, 0.10):
        counts = Counter(name for seed in range(seeds) for name in named(seed, off))
        shares = [counts[name] / seeds for name in ("both", "tokenise", "encode", "parse")]
        print(f"{off:>20.0%}   " + "   ".join(f"{share:>8.1%}" for share in shares))


def named(seed: int, off: float) -> set[str]:
    """Return which benchmarks one report names, and ``both`` for the two, in place, and no more."""
    found = changes(seed, off)
    names = {one.series.case for one in found}
    placed = all(near(one.series.case, one.before + 1, one.after + 1) for one in found)
    return names | ({"both"} if placed and names == {"tokenise", "encode"} else set())


def changes(seed: int, off: float) -> tuple[Change, ...]:
    """Return what one report tells."""
    branch = [
        Commit(f"{number:040x}", "", f"2026-{1 + (number > 30)}-{1 + number % 30:02}", number)
        for number in range(COMMITS)
    ]
    branch = [replace(one, committed_at=_day(one.position or 0)) for one in branch]
    environment = Environment("here", {})
    template = RecordedRun(
        id="newest", source="nightly", sha=branch[-1].sha, subject="", branch="main",
        committed_at=branch[-1].committed_at, measured_at=NOW, position=COMMITS - 1,
        environment=environment, runner="here",
        points=tuple(
            Point(case, metric, "s", _level(case, metric)) for case in CASES for metric in SPREAD
        ),
    )  # fmt: skip
    made = {run.sha: run for run in replayed(branch, [template], seed)}
    runs = [made.get(one.sha, template) for one in branch]
    rng = Random(seed)
    real = {number - 1 for number in EARLIER} | set(range(COMMITS - NEWEST, COMMITS))
    values = {
        (case, metric): [
            point.value * (exp(rng.gauss(0.0, off)) if index in real else 1.0)
            for index, run in enumerate(runs)
            for point in run.points
            if (point.case, point.metric) == (case, metric)
        ]
        for case in CASES
        for metric in SPREAD
    }
    nights = tuple(
        RunHeader(
            run.sha, "nightly", run.sha, "", "main", run.committed_at, run.measured_at, i, "here"
        )
        for i, run in enumerate(runs)
    )
    rows = np.arange(COMMITS, dtype=np.int32)
    series = [
        Series(SeriesKey("here", *key), "s", "lower", rows, np.array(numbers))
        for key, numbers in values.items()
    ]
    return analyse(series, {"here": Timeline("here", nights)}, now=NOW).changes


def _level(case: str, metric: str) -> float:
    return loops(case, COMMITS) * LOOP_S if metric.startswith("latency") else 1.0


def _day(number: int) -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)).isoformat()


if __name__ == "__main__":
    main()
