"""pyperf: a run of the suite for each commit, then ``pyperf compare_to``."""

from __future__ import annotations

import os
import re
from pathlib import Path

from benchmarks.peers.finding import BENCHMARKS, Finding
from benchmarks.peers.tools.samples import change_of
from benchmarks.peers.workplace import Runner, ToolFailed

# What its documentation recommends without root; `pyperf system tune` needs root.
SETTINGS = {
    "defaults": (),
    "--rigorous --affinity": ("--rigorous", f"--affinity={max(os.sched_getaffinity(0))}"),
}
_INHERITED = "--inherit-environ=PYTHONPATH,OMP_NUM_THREADS,TORCHINDUCTOR_CACHE_DIR"


def measure(runner: Runner, setting: str, condition: str) -> list[Finding]:
    """Return what compare_to calls slower, by significance alone and from 5 % on."""
    files = {branch: runner.folder / f"{branch}.json" for branch in ("base", condition)}
    for branch, file in files.items():
        arguments = ("suites/pyperf_suite.py", "--quiet", "-o", str(file), _INHERITED)
        runner.python(*arguments, *SETTINGS[setting], tree=runner.place.tree(branch))
    means = {branch: _means(file) for branch, file in files.items()}
    findings = []
    for rule, options in (("significant", []), ("--min-speed=5", ["--min-speed=5"])):
        command = ("-m", "pyperf", "compare_to", "-v", *options, *map(str, files.values()))
        slower = claims(runner.python(*command, tree=runner.place.tree("base")))
        for name in BENCHMARKS:
            if name not in slower:
                raise ToolFailed(f"pyperf compare_to says nothing of {name}")
            change = change_of(means["base"][name], means[condition][name])
            findings.append(Finding(name, rule, slower[name], change))
    return findings


def claims(printed: str) -> dict[str, bool]:
    """Return by benchmark whether ``compare_to -v`` claims that it got slower."""
    sections = re.split(r"^(\w+)\n=+$", printed, flags=re.MULTILINE)
    found = {}
    for name, text in zip(sections[1::2], sections[2::2], strict=True):
        if "ERROR" in text:
            raise ToolFailed(f"pyperf could not test {name}: {text.strip()}")
        significant = re.search(r"^Significant", text, flags=re.MULTILINE) is not None
        found[name] = significant and re.search(r"x slower$", text, re.MULTILINE) is not None
    return found


def _means(file: Path) -> dict[str, float]:
    import pyperf

    suite = pyperf.BenchmarkSuite.load(str(file))
    return {benchmark.get_name(): benchmark.mean() for benchmark in suite.get_benchmarks()}
