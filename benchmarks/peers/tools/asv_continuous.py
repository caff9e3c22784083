"""asv: ``asv continuous`` in the environment it builds itself, then ``asv compare`` by factor."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.finding import BENCHMARKS, Finding
from benchmarks.peers.tools.samples import change_of
from benchmarks.peers.workplace import Runner, ToolFailed

SETTINGS = {
    "defaults": (),
    "interleaved, 4 rounds, pinned": (
        "--interleave-rounds",
        "-a",
        "rounds=4",
        "--cpu-affinity",
        str(max(os.sched_getaffinity(0))),
    ),
}
_NAMES = {f"suite.{name.title().replace('_', '')}.time_call": name for name in BENCHMARKS}
_FACTORS = ("1.05", "1.02")  # besides the default of 1.1, which `asv continuous` prints itself


def prepare(runner: Runner) -> None:
    """Let asv build its environment (a virtualenv with torch) once, outside of what is timed."""
    base = ("-m", "asv", "machine", "--yes", "--config", _configuration(runner))
    runner.python(*base, cwd=runner.folder, more=_home(runner))
    arguments = ("-m", "asv", "setup", "--config", _configuration(runner))
    # It builds, prints the list of its environments, and ends with 1 because of that list.
    runner.python(*arguments, cwd=runner.folder, accepted=(0, 1), more=_home(runner))
    environments = runner.place.scratch / "asv" / "environments"
    if not list(environments.glob("*/bin/python")):
        raise ToolFailed(f"asv setup left no environment in {environments}")


def measure(runner: Runner, setting: str, condition: str) -> list[Finding]:
    """Return what asv marks with a plus at its default factor of 1.1, at 1.05 and at 1.02."""
    configuration = ("--config", _configuration(runner))
    command = ("-m", "asv", "continuous", *configuration, "--no-only-changed", *SETTINGS[setting])
    printed = runner.python(
        *command, "base", condition, cwd=runner.folder, accepted=(0, 1), more=_home(runner)
    )
    tables = {"1.1": printed}
    for factor in _FACTORS:
        command = ("-m", "asv", "compare", *configuration, "--factor", factor, "base", condition)
        tables[factor] = runner.python(*command, cwd=runner.folder, more=_home(runner))
    seconds = _seconds(runner)
    findings = []
    for factor, table in tables.items():
        marks = claims(table)
        for full, name in _NAMES.items():
            if full not in marks:
                raise ToolFailed(f"asv has no result for {full}")
            change = change_of(*(seconds[branch][full] for branch in ("base", condition)))
            findings.append(Finding(name, f"factor {factor}", marks[full], change))
    return findings


def claims(table: str) -> dict[str, bool]:
    """Return by benchmark whether a printed table marks it as slower; ToolFailed if it failed."""
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        name = re.match(r"suite\.\w+\.time_call", cells[-1])
        if len(cells) != 5 or name is None:
            continue
        if cells[0] == "!" or "failed" in cells[1] + cells[2] or cells[3] == "n/a":
            raise ToolFailed(f"asv: {line.strip()}")
        found[name.group()] = cells[0] == "+"
    return found


def _configuration(runner: Runner) -> str:
    repository = runner.place.repository
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    settings = {
        "version": 1,
        "project": "peerwork",
        "repo": str(repository),
        "branches": ["base"],
        "pythons": [minor],
        "environment_type": "virtualenv",
        "matrix": {"req": {"torch": [version("torch").split("+")[0]], "numpy": [version("numpy")]}},
        "build_command": [
            "python -m pip wheel --no-deps --no-build-isolation -w {build_cache_dir} {build_dir}"
        ],
        "install_command": ["in-dir={env_dir} python -m pip install --no-deps {wheel_file}"],
        "benchmark_dir": str(repository / "suites" / "asv_suite"),
        "env_dir": str(runner.place.scratch / "asv" / "environments"),
        "results_dir": str(runner.folder / "results"),
        "html_dir": str(runner.folder / "html"),
        "install_timeout": 1800,
        "launch_method": "spawn",
    }
    file = runner.folder / "asv.conf.json"
    file.write_text(json.dumps(settings, indent=1), encoding="utf-8")
    return str(file)


def _home(runner: Runner) -> dict[str, str]:
    """asv keeps its file about the machine in the home folder: not in the user's."""
    home = runner.place.scratch / "asv" / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home)}


def _seconds(runner: Runner) -> dict[str, dict[str, float]]:
    """Return the medians by branch from asv's result files, one a commit."""
    found: dict[str, dict[str, float]] = {}
    for file in (runner.folder / "results" / platform.node()).glob("*.json"):
        result = json.loads(file.read_text(encoding="utf-8"))
        if "results" not in result:
            continue
        column = result["result_columns"].index("result")
        medians = {name: row[column][0] for name, row in result["results"].items()}
        found[_branch(runner.place.repository, result["commit_hash"])] = medians
    return found


def _branch(repository: Path, commit: str) -> str:
    heads = repository / ".git" / "refs" / "heads"
    return next(head.name for head in heads.iterdir() if head.read_text().strip() == commit)
