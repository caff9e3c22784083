"""A comparison whose own configuration lets more pass than base's says so."""

from __future__ import annotations

from pathlib import Path

from tests.builders.project import QUICK, Project
from tests.builders.simulated import Simulated

BENCH = "benchmarks/bench_a.py"
STEADY = """\
import perfci

@perfci.benchmark{}
def steady():
    return lambda: sum(range(500))
"""
LAXER = "The configuration that decided lets more pass than base's: "


def laxer_notes(project: Project) -> list[str]:
    report = project.report("compare", "HEAD~", "HEAD", "--rounds", "5", "--all")
    return [note for note in report["notes"] if note.startswith(LAXER)]


def test_a_head_that_loosens_its_own_gate_is_named(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", Simulated())
    project.commit("base", **{BENCH: STEADY.format("")})
    loose = '\n[tool.perfci.metrics.latency_p50]\nthreshold = "300%"\n'
    project.commit("head", **{"pyproject.toml": QUICK + loose})
    assert laxer_notes(project) == [f"{LAXER}latency_p50 threshold 5 % → 300 %."]
    project.commit(
        "the decorator, too", **{BENCH: STEADY.format('(thresholds={"latency_p50": "400%"})')}
    )
    assert laxer_notes(project) == [f"{LAXER}steady latency_p50 threshold 300 % → 400 %."]
    project.commit("stricter again", **{"pyproject.toml": QUICK, BENCH: STEADY.format("")})
    assert laxer_notes(project) == []
