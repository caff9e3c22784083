"""A branch to be recorded: a real repository whose commits are measured in about a second each."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path

from perfci.history.store import open_history
from perfci.model.run import RecordedRun
from tests.builders.project import Project

QUICKEST = """\
[tool.perfci]
rounds = 2
max_rounds = 2
round_time = 0.01
burst = 0.002
warmup = 0.01
timeout = 20
budget = "60s"
"""
BENCHMARK = """\
import perfci
from lib import work

@perfci.benchmark
def {name}():
    return work
"""


class Branch:
    """``main`` of ``project`` and the history beside it."""

    def __init__(self, project: Project, configuration: str = "") -> None:
        self.project = project
        self.history = project.folder.parent / "history.sqlite"
        project.write("pyproject.toml", QUICKEST + configuration)
        self.add_benchmark("counting")

    def add_benchmark(self, name: str) -> None:
        self.project.write(f"benchmarks/bench_{name}.py", BENCHMARK.format(name=name))

    def commit(self, loops: int, **files: str) -> str:
        self.project.write("lib.py", f"def work():\n    return sum(range({loops}))\n")
        return self.project.commit(f"{loops} loops", **files)

    def nightly(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """Run ``perfci nightly``; return what it printed."""
        place = () if "--history" in arguments else ("--history", str(self.history))
        done = self.project.perfci("nightly", *place, *arguments, **environment)
        assert done.without_traceback().code == code, done.text
        return done.text

    def runs(self, history: str = "") -> list[RecordedRun]:
        with open_history(history or str(self.history)) as opened:
            return list(opened.recorded_runs())

    def as_recorded(self) -> list[str]:
        """Return the commits in the order of recording: several may be of one second."""
        connection = sqlite3.connect(f"file:{self.history}?mode=ro", uri=True)
        try:
            found = connection.execute("SELECT sha FROM perfci_runs ORDER BY rowid")
            return [one for (one,) in found]
        finally:
            connection.close()


def measured(runs: list[RecordedRun]) -> Counter[tuple[str, str]]:
    """Count how often each case of each commit was measured."""
    pairs = [{(run.sha, point.case) for point in run.points} for run in runs]
    return Counter(pair for found in pairs for pair in found)


def away_from_midnight(seconds: float) -> None:
    """Let two nights that begin within ``seconds`` be of one day, in UTC."""
    left = 86_400 - time.time() % 86_400
    if left < seconds:
        time.sleep(left + 1)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until ``process`` has made ``path``."""
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def logged(path: Path) -> list[str]:
    """Return the lines of a file that builds add to."""
    return path.read_text().splitlines() if path.exists() else []
