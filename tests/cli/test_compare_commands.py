"""``perfci.command`` compared: planted work is found, and no run is spared by what it read."""

from __future__ import annotations

import pytest

from tests.builders.project import Project, rows

pytestmark = pytest.mark.processes
BENCHMARK = """\
import sys
import perfci

@perfci.benchmark
def tool():
    return perfci.command([sys.executable, "tool.py"])
"""
COMPARED = ("compare", "HEAD~1", "HEAD", "--rounds", "2")
TOOL = "sum(range({}))\n"


@pytest.fixture
def commands(project: Project) -> Project:
    project.write("benchmarks/bench_one.py", BENCHMARK)
    project.write("tool.py", TOOL.format(1_000_000))
    project.commit("base")
    return project


def test_a_command_that_does_more_regresses(commands: Project) -> None:
    commands.commit("more", **{"tool.py": TOOL.format(4_000_000)})
    found = rows(commands.report(*COMPARED), "tool")
    assert found["command_cpu_time"]["ratio"] > 2.0  # what others do is not in it
    assert found["latency_p50"]["ratio"] > 1.05


def test_a_command_is_measured_although_nothing_that_python_read_differs(
    commands: Project,
) -> None:
    commands.commit("other", **{"unused.txt": "new\n"})
    report = commands.report(*COMPARED)
    assert rows(report, "tool")["latency_p50"]["method"] == "paired_t"
