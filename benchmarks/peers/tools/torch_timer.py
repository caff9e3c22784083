"""torch.utils.benchmark: Timer in a process of each commit, compared as its Compare prints."""

from __future__ import annotations

import json

from benchmarks.peers.finding import BENCHMARKS, Finding
from benchmarks.peers.tools.samples import change_of, figures_apart, quartiles_apart
from benchmarks.peers.workplace import Runner

# The recipe in its documentation runs for 1 s; its example merges replicates in alternating order.
SETTINGS: dict[str, tuple[int, tuple[str, ...]]] = {
    "defaults": (1, ()),
    "3 replicates of 1 s": (3, ("--min-run-time", "1")),
}


def measure(runner: Runner, setting: str, condition: str) -> list[Finding]:
    """Merge each side's replicates and compare medians by two rules, and with 5 % besides."""
    from torch.utils.benchmark import Measurement
    from torch.utils.benchmark.utils.common import TaskSpec

    replicates, arguments = SETTINGS[setting]
    times: dict[str, dict[str, list[float]]] = {"base": {}, condition: {}}
    for _ in range(replicates):
        for branch, of_branch in times.items():
            tree = runner.place.tree(branch)
            printed = json.loads(runner.python("suites/torch_timer.py", *arguments, tree=tree))
            for name in BENCHMARKS:
                of_branch.setdefault(name, []).extend(printed[name])
    findings = []
    for name in BENCHMARKS:
        base, head = (
            Measurement(1, times[branch][name], TaskSpec("call()", "pass", label=name))
            for branch in ("base", condition)
        )
        change = change_of(base.median, head.median)
        alarm = figures_apart(base, head)
        findings += [
            Finding(name, "significant figures", alarm, change),
            Finding(name, "the same, +5 %", alarm and change > 0.05, change),
            Finding(name, "quartiles apart", quartiles_apart(base, head), change),
        ]
    return findings
