"""A launcher goes before the Python of workers and builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.project import Project

pytestmark = pytest.mark.processes

BENCHMARK = """\
import os, perfci

assert os.environ["LAUNCHED"] == "yes, twice"

@perfci.benchmark
def counting():
    return lambda: sum(range(1000))
"""


def test_workers_and_builds_start_behind_it(project: Project, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    project.write(
        "perfci.toml",
        "launcher = ['env', 'LAUNCHED=yes, twice']\n"
        "build = [\"sh -c 'echo $LAUNCHED > built'\"]\nrounds = 2\nmax_rounds = 2\nwarmup = 0.05\n",
    )
    project.commit("base", **{"benchmarks/bench_launched.py": BENCHMARK})
    own = ("run", "HEAD", "--json", str(report))
    done = project.process(*own)
    assert done.code == 0, done.text
    assert '"launcher": "env LAUNCHED=yes, twice"' in report.read_text()
    (built,) = project.cache.glob("*/trees/*/built")
    assert built.read_text() == "yes, twice\n"
