"""pytest-benchmark: base is saved, head fails by ``--benchmark-compare-fail``."""

from __future__ import annotations

import json
import re

from benchmarks.peers.finding import BENCHMARKS, Finding
from benchmarks.peers.tools.samples import change_of
from benchmarks.peers.workplace import Runner, ToolFailed

SETTINGS = {
    "defaults": (),
    "no gc, warm-up, 3 s": (
        "--benchmark-disable-gc",
        "--benchmark-warmup=on",
        "--benchmark-min-rounds=50",
        "--benchmark-max-time=3",
        "--benchmark-calibration-precision=100",
    ),
}
_FIELDS = ("min", "median", "mean")


def measure(runner: Runner, setting: str, condition: str) -> list[Finding]:
    """Return what fails by min, median and mean from 5 % on: one run answers all three."""
    storage = f"--benchmark-storage=file://{runner.folder / 'saved'}"
    suite = (
        *("-m", "pytest", "suites/test_suite.py", "-p", "no:cacheprovider", storage),
        *SETTINGS[setting],
    )
    files = {branch: runner.folder / f"{branch}.json" for branch in ("base", condition)}
    saving = ("--benchmark-save=base", f"--benchmark-json={files['base']}")
    runner.python(*suite, *saving, tree=runner.place.tree("base"))
    comparing = (
        "--benchmark-compare=0001",
        f"--benchmark-json={files[condition]}",
        "--benchmark-compare-fail",  # once: given again, the last one would win
        *(f"{field}:5%" for field in _FIELDS),
    )
    tree = runner.place.tree(condition)
    printed = runner.python(*suite, *comparing, tree=tree, accepted=(0, 1))
    errors = max(runner.folder.glob("*.err")).read_text(encoding="utf-8")
    failed = claims(printed + errors)
    stats = {branch: _stats(json.loads(file.read_text())) for branch, file in files.items()}
    findings = []
    for name in BENCHMARKS:
        for field in _FIELDS:
            change = change_of(stats["base"][name][field], stats[condition][name][field])
            alarm = (name, field) in failed
            if alarm != (change > 0.05):
                raise ToolFailed(f"pytest-benchmark's claim on {field} of {name}: {change:+.2%}")
            findings.append(Finding(name, f"{field}:5%", alarm, change))
    return findings


def claims(printed: str) -> set[tuple[str, str]]:
    """Return (benchmark, field) of each regression that pytest-benchmark prints."""
    pattern = r"^\s*test_work\[(\w+)\] \(0001_base\) - Field '(\w+)' has failed Percentage"
    return set(re.findall(pattern, printed, flags=re.MULTILINE))


def _stats(report: dict[str, list[dict[str, dict[str, float]]]]) -> dict[str, dict[str, float]]:
    return {str(entry["params"]["name"]): entry["stats"] for entry in report["benchmarks"]}
