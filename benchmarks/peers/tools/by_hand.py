"""By hand: a loop of 100 calls in a process of each commit; 5 % slower is a regression."""

from __future__ import annotations

import json

from benchmarks.peers.finding import BENCHMARKS, Finding
from benchmarks.peers.tools.samples import change_of
from benchmarks.peers.workplace import Runner

SETTINGS = {"a loop of 100 calls": 1, "best of 3 processes": 3}


def measure(runner: Runner, setting: str, condition: str) -> list[Finding]:
    """Compare the least mean of each side's processes, which take turns."""
    means: dict[str, dict[str, float]] = {"base": {}, condition: {}}
    for _ in range(SETTINGS[setting]):
        for branch, least in means.items():
            arguments = ("suites/loops.py", "loop", "--calls", "100")
            printed = json.loads(runner.python(*arguments, tree=runner.place.tree(branch)))
            for name in BENCHMARKS:
                (mean,) = printed[name]
                least[name] = min(mean, least.get(name, mean))
    changes = {name: change_of(means["base"][name], means[condition][name]) for name in BENCHMARKS}
    return [Finding(name, "mean +5 %", change > 0.05, change) for name, change in changes.items()]
