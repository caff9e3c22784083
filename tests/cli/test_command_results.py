"""A command's file of results: each result is compared, and a file that is none is named."""

from __future__ import annotations

import json

import pytest

from tests.builders.project import Project, rows

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("single_round")]
BENCHMARKS = """\
import os, sys, tempfile
import perfci

def run(tool, **options):
    out = os.path.join(tempfile.gettempdir(), "out.json")
    with open(out, "w") as file:
        file.write("{}")  # an old one, which no run may be measured by
    return perfci.command([sys.executable, tool, out], results=out, **options)

@perfci.benchmark(metrics=[])
def suite():
    return run("suite.py", format="nvbench")

@perfci.benchmark(metrics=[])
def silent():
    return run("silent.py")

@perfci.benchmark(metrics=[])
def other():
    return run("suite.py", format="vllm")
"""
SUITE = """\
import json, random, sys
from speeds import SPEEDS
states = lambda seconds: [{"summaries": [
    {"tag": f"nv/cold/time/{clock}/mean",
     "data": [{"name": "value", "type": "float64", "value": str(seconds * random.gauss(1, 0.001))}]}
    for clock in ("gpu", "cpu")
]}]
with open(sys.argv[1], "w") as file:
    json.dump({
        "meta": {"version": {"nvbench": {}}},
        "benchmarks": [
            {"name": name, "states": states(seconds)} for name, seconds in SPEEDS.items()
        ],
    }, file)
"""


def test_each_result_of_a_suite_is_compared_and_what_fails_is_named(project: Project) -> None:
    project.write("benchmarks/bench_suite.py", BENCHMARKS)
    project.write("suite.py", SUITE)
    project.write("silent.py", "")
    project.write("speeds.py", "SPEEDS = {'copy': 1e-3, 'sort': 2e-3, 'gone': 1.0}\n")
    project.commit("base")
    slower = "SPEEDS = {'copy': 1.08e-3, 'sort': 2e-3, 'new': 1.0}\n"
    project.commit("slower", **{"speeds.py": slower})
    listed = project.perfci("list").out
    assert "suite" in listed

    asked = ("--budget", "10m")
    report = project.report("compare", "HEAD~1", "HEAD", *asked)
    suite = rows(report, "suite")
    copy, sort = suite["copy.device_time_mean"], suite["sort.device_time_mean"]
    assert (copy["gate"], copy["unit"]) == ("fail", "s")
    assert copy["ratio"] == pytest.approx(1.08, rel=0.005)
    assert sort["ratio"] == pytest.approx(1.0, rel=0.005)
    assert suite["copy.latency_mean"]["gate"] == "info"
    assert suite["gone.device_time_mean"]["head"] is None
    assert suite.keys() == {
        f"{name}.{metric}"
        for name in ("copy", "sort", "gone")
        for metric in ("device_time_mean", "latency_mean")
    }
    reasons = json.dumps(report["verdict"])
    assert "gone.device_time_mean" in reasons
    kinds = {failure["case"]: failure["kind"] for failure in report["failures"]}
    assert kinds == {"silent": "no_results", "other": "bad_results"}
    wrong = [f["message"] for f in report["failures"] if f["kind"] == "bad_results"]
    assert all("out.json is not a file of results of vllm" in message for message in wrong)
