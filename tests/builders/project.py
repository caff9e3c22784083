"""A user's project: a real git repository with benchmarks, and perfci run on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from perfci.measure.executor import Executor
from perfci.measure.progress import CaseNeeds
from tests.builders.in_process import Done, in_process

QUICK = """\
[tool.perfci]
rounds = 5
max_rounds = 9
round_time = 0.01
burst = 0.002
warmup = 0.01
timeout = 20
budget = "60s"
why = false
"""

COUNTING = """\
import perfci
from lib import work

@perfci.benchmark
def counting():
    return work

@perfci.benchmark
def steady():
    return lambda: sum(range(500))
"""


NOISE_PASSES = """
[tool.perfci.metrics.latency_p50]
threshold = "900%"

[tool.perfci.metrics.cold_start]
threshold = "900%"
"""
"""More configuration, for tests of exit codes on the same code twice: no luck is that large."""


class Project:
    """A repository in ``folder``; its cache folder lies beside it.

    ``perfci`` runs in this process, which spares Python's start and all imports; ``process`` and
    ``start`` make it one of its own. An ``executor`` starts the workers; without one they are
    processes.
    """

    executor: Executor | None = None  # of copies, too, which are made without __init__

    def __init__(self, folder: Path, executor: Executor | None = None) -> None:
        self.folder = folder
        self.executor = executor
        self.cache = folder.parent / f"{folder.name}-cache"
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("pyproject.toml", QUICK)

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"]
        identity += ["-c", "maintenance.auto=false"]  # a process of each commit's
        return subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def write(self, path: str, text: str) -> Path:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def commit(self, message: str = "change", **files: str) -> str:
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head()

    def head(self) -> str:
        """Return the commit that was just made, without asking git: it takes a process."""
        folder = self.folder / ".git"
        text = os.fsdecode((folder / "HEAD").read_bytes()).strip()
        name = text.removeprefix("ref: ")
        return text if name == text else (folder / name).read_text(encoding="ascii").strip()

    def counting(self, loops: int) -> None:
        """Write a library whose ``work`` costs ``loops``, and its benchmarks."""
        self.write("lib.py", f"def work():\n    return sum(range({loops}))\n")
        self.write("benchmarks/bench_counting.py", COUNTING)

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in {"GITHUB_TOKEN", "GH_TOKEN"}}
        return {**kept, "PERFCI_CACHE_DIR": str(self.cache), **more}

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "perfci", *arguments],
            cwd=self.folder,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def perfci(self, *arguments: str, **environment: str) -> Done:
        """Run the command in this process; with a ``PYTHONPATH``, in one that finds its plugins."""
        if "PYTHONPATH" in environment:
            assert self.executor is None, "another process can't simulate its workers"
            return self.process(*arguments, **environment)
        environ = self.environment(**environment)
        return in_process(arguments, self.folder, environ, self.executor)

    def process(self, *arguments: str, **environment: str) -> Done:
        """Run the command in a process of its own: signals and standard streams are its own."""
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=240)
        return Done(process.returncode, out, err)

    def report(self, *arguments: str, code: int | None = None) -> dict[str, Any]:
        """Run a measuring command with ``--json`` and return the report."""
        path = self.folder.parent / "report.json"
        done = self.perfci(*arguments, "--json", str(path)).without_traceback()
        assert path.exists(), done.text
        if code is not None:
            assert done.code == code, done.text
        return json.loads(path.read_text(encoding="utf-8"))


@contextmanager
def one_round() -> Iterator[None]:
    """Let sessions of this process have one round a case: what ran shows in the first."""
    once = {"minimum_rounds": lambda *_: 1, "maximum_rounds": lambda *_: 1}
    with patch.multiple(CaseNeeds, **once):
        yield


def assert_ends(pid: int) -> None:
    """Wait until a process has ended: one that nobody reaps stays a zombie."""
    deadline = time.monotonic() + 10
    while _lives(pid):
        assert time.monotonic() < deadline, f"{pid} lives on"
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def rows(report: dict[str, Any], case: str) -> dict[str, dict[str, Any]]:
    """Return the rows of one case by metric."""
    return {row["metric"]: row for row in report["results"] if row["case"] == case}
