"""Metrics of other distributions: measured and judged like perfci's own, named when broken."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from perfci import metrics
from perfci.metrics import METRICS, Metric, latency, metric_groups
from tests.builders.installed import brief
from tests.builders.project import NOISE_PASSES, QUICK, Project, rows
from tests.plugins import Environment, install

pytestmark = pytest.mark.processes

GROUP = "perfci.metrics"
OPEN_FILES = """
import os

from perfci.metrics import Collector, Metric, Reading

METRICS = {
    Metric("open_files", "count", "exact", 0.0, "warn", absolute=True): "files left open",
    Metric("latency_best", "s", "sampled", 0.05, "info"): "the quickest warm call",
}


class OpenFiles(Collector):
    def set_up(self):
        self.before = len(os.listdir("/proc/self/fd"))

    def last(self):
        return Reading({"open_files": len(os.listdir("/proc/self/fd")) - self.before})


COLLECTOR = OpenFiles


def reduce(warm):
    return Reading({"latency_best": warm.samples[0]})


def explain(moved):
    if "open_files" in moved.regressed:
        yield moved.because("open_files", "leak", "each call opens one, up to three")
"""
BENCHMARK = """
import perfci
from lib import work

@perfci.benchmark(metrics=["latency_p50", "open_files", "latency_best"], {more})
def leaking():
    return work
"""
LEAKING = """
kept = []

def work():
    if len(kept) < 3:
        kept.append(open(__file__))
"""
GATES = """
[tool.perfci.metrics.open_files]
gate = "fail"
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A Python that measures, and has the metric."""
    environment = Environment(tmp_path_factory.mktemp("environment") / "venv")
    environment.install(GROUP, "open_files", OPEN_FILES)
    return environment


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder beside perfci's own Python that has the metric, too."""
    return str(install(tmp_path_factory.mktemp("site"), GROUP, "open_files", OPEN_FILES))


def project_of(folder: Path, more: str = "", benchmark: str = BENCHMARK) -> Project:
    project = Project(folder / "project")
    settings = brief(QUICK) + NOISE_PASSES + more
    sound = LEAKING.replace("< 3", "< 0")
    files = {"pyproject.toml": settings, "benchmarks/bench_one.py": benchmark}
    project.commit("base", **files, **{"lib.py": sound})
    project.commit("head", **{"lib.py": LEAKING})
    return project


def compared(
    project: Project, *arguments: str, **environment: str
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    asked = ("compare", "HEAD~1", "HEAD", "--rounds", "2", "--json", "report.json", *arguments)
    done = project.perfci(*asked, **environment).without_traceback()
    path = project.folder / "report.json"
    assert path.exists(), done.text
    report = json.loads(path.read_text())
    return done.code, report, rows(report, "leaking")


def test_a_metric_of_another_distribution_is_measured_judged_and_explained(
    tmp_path: Path, environment: Environment, site: str
) -> None:
    benchmark = BENCHMARK.format(more='thresholds={"open_files": 0}')
    project = project_of(tmp_path, GATES, benchmark)
    code, report, row = compared(project, "--python", environment.python, PYTHONPATH=site)
    assert (code, report["verdict"]["status"]) == (1, "fail")
    assert list(row) == ["latency_p50", "open_files", "latency_best"]
    assert row["open_files"]["status"] == "regressed"
    assert row["open_files"]["gate"] == "fail"
    assert row["open_files"]["difference"] == 3.0
    assert row["latency_best"]["base"]["center"] > 0.0
    texts = {one["metric"]: one["text"] for one in report["explanations"]}
    assert texts["open_files"] == "each call opens one, up to three"


def test_what_only_the_measuring_python_has_is_reported_with_its_own_policy(
    tmp_path: Path, environment: Environment
) -> None:
    project = project_of(tmp_path, benchmark=BENCHMARK.format(more=""))
    code, _, row = compared(project, "--python", environment.python)
    assert row["open_files"]["status"] == "regressed"
    assert row["open_files"]["gate"] == "warn"
    assert code != 1
    assert "latency_best" not in row
    project.write("pyproject.toml", (project.folder / "pyproject.toml").read_text() + GATES)
    refused = project.perfci("list").without_traceback()
    assert refused.code == 2
    assert "open_files" in refused.err


def test_what_only_perfcis_own_python_has_is_not_measured_and_says_why(
    tmp_path: Path, site: str
) -> None:
    project = project_of(
        tmp_path,
        GATES,
        BENCHMARK.replace(", {more}", "").replace(
            'metrics=["latency_p50", "open_files", "latency_best"]', ""
        ),
    )
    python = Environment(tmp_path / "bare").python
    _, report, row = compared(project, "--python", python, "-k", "leaking", PYTHONPATH=site)
    assert "open_files" not in row
    why = "someones-open_files is not installed in the Python that measures"
    assert report["not_measured"]["open_files"] == why
    assert row["latency_best"]["head"]["center"] > 0.0


def test_the_broken_metric_of_a_measuring_python_is_named(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install(GROUP, "broken", "raise RuntimeError('no licence')")
    project = Project(tmp_path / "project")
    project.counting(100)
    project.commit("base")
    done = project.perfci("run", "--python", environment.python).without_traceback()
    assert done.code == 2, done.text
    assert "someones-broken" in done.err
    assert "no licence" in done.err


def test_each_metric_belongs_to_one_group() -> None:
    names = [metric.name for group in metric_groups() for metric in group.metrics]
    assert names == list(METRICS)
    assert len(names) == len(set(names))


def test_a_group_in_the_package_needs_no_place_and_comes_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toy = ModuleType("perfci.metrics.toy")
    toy.METRICS = {Metric("toy", "count", "exact", 0.0, "warn"): "a toy"}
    modules = [("toy", toy), ("latency", latency)]
    monkeypatch.setattr(metrics, "built_in_modules", lambda _package: modules)
    assert [group.name for group in metrics._own()] == [latency.__name__, toy.__name__]
