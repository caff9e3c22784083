"""The comparison with other tools: reading what they print, and scoring; nothing is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.peers.finding import BENCHMARKS, CONDITIONS, Finding, Measurement, encode, read
from benchmarks.peers.score import Rate, scores
from benchmarks.peers.tools import asv_continuous, perfci_compare, pyperf_compare, pytest_compare
from benchmarks.peers.tools.samples import usual_recipe
from benchmarks.peers.workplace import ToolFailed

PYPERF = """\
eager
=====

Mean +- std dev: [a] 877 us +- 300 us -> [b] 767 us +- 248 us: 1.14x faster
Significant (t=4.00)

tiny
====

Mean +- std dev: [a] 2.21 ms +- 1.25 ms -> [b] 3.02 ms +- 0.80 ms: 1.37x slower
Significant (t=-2.45)

loading
=======

Mean +- std dev: [a] 557 us +- 27 us -> [b] 561 us +- 24 us: 1.01x slower
Not significant!

Geometric mean: 1.17x slower
"""

ASV = """\
| Change   | Before [a1b2c3d4] | After [b1b2c3d4] |   Ratio | Benchmark (Parameter)     |
|----------|-------------------|------------------|---------|---------------------------|
| +        | 522±7μs           | 580±10μs         |    1.11 | suite.Eager.time_call     |
|          | 3.01±0.1μs        | 3.1±0.1μs        |   ~1.12 | suite.Tiny.time_call      |
| -        | 600±7μs           | 510±7μs          |    0.85 | suite.Loading.time_call   |
"""


def test_pyperf_claims_only_what_is_significant_and_slower():
    assert pyperf_compare.claims(PYPERF) == {"eager": False, "tiny": True, "loading": False}


def test_asv_claims_what_it_marks_with_a_plus():
    marks = asv_continuous.claims(ASV)
    assert marks == {
        "suite.Eager.time_call": True,
        "suite.Tiny.time_call": False,
        "suite.Loading.time_call": False,
    }


def test_pytest_benchmark_claims_each_field_that_failed():
    printed = (
        "Performance has regressed:\n"
        "\ttest_work[eager] (0001_base) - Field 'min' has failed "
        "PercentageRegressionCheck: 6.1 > 5.0\n"
        "\ttest_work[tiny] (0001_base) - Field 'mean' has failed "
        "PercentageRegressionCheck: 9.1 > 5.0\n"
    )
    assert pytest_compare.claims(printed) == {("eager", "min"), ("tiny", "mean")}


def _report(**latency):
    row = {"metric": "latency_p50", "status": "unchanged", "ratio": 1.0, "findings": []}
    rows = [{**row, "case": name, "gate": "fail"} for name in BENCHMARKS]
    rows[0] |= latency
    return {"failures": [], "results": rows}


def test_perfci_is_judged_by_its_gate_and_by_significance():
    warned = _report(ratio=1.02, findings=[{"code": "below-threshold"}])
    first, second, *others = perfci_compare.judge(warned)
    assert (first.alarm, second.alarm) == (False, True)
    assert not any(finding.alarm for finding in others)
    regressed = perfci_compare.judge(_report(ratio=1.06, status="regressed"))
    assert [finding.alarm for finding in regressed[:2]] == [True, True]


def test_perfci_gets_no_pardon_for_failing_another_metric_or_a_benchmark():
    report = _report()
    row = {**report["results"][0], "metric": "cold_start", "status": "regressed"}
    report["results"].append(row)
    assert perfci_compare.judge(report)[0].elsewhere == ("cold_start",)
    report["failures"] = [{"case": "eager", "kind": "crash"}]
    with pytest.raises(ToolFailed):
        perfci_compare.judge(report)


def test_the_usual_recipe_asks_for_slower_significant_and_large():
    base = [1.0, 1.1, 0.9, 1.05, 0.95] * 20
    assert usual_recipe(base, [second + 0.05 for second in base])
    assert not usual_recipe(base, [second - 0.05 for second in base])
    assert not usual_recipe(base, [second + 0.005 for second in base])
    assert not usual_recipe(base[:3], [second + 0.05 for second in base[:3]])


def _measurement(condition, alarms, **more):
    findings = tuple(Finding(name, "r", name in alarms, 0.0) for name in BENCHMARKS)
    return Measurement("asv", "defaults", condition, 0, "now", 10.0, findings, **more)


def test_a_failed_measurement_counts_as_failed_and_never_as_no_alarm():
    whole = _measurement("same", {"tiny"})
    failed = replace(_measurement("same", ()), findings=(), failure="crashed", repetition=1)
    (score,) = scores([whole, failed])
    assert score.rates["same"] == Rate(1, 6)
    assert score.failures == Rate(1, 2)


def test_an_alarm_elsewhere_is_false_on_identical_commits_and_no_detection_of_latency():
    found = []
    for condition in CONDITIONS:
        measurement = _measurement(condition, ())
        first = replace(measurement.findings[0], elsewhere=("cold_start",))
        found.append(replace(measurement, findings=(first, *measurement.findings[1:])))
    (score,) = scores(found)
    assert [score.rates[condition].hits for condition in CONDITIONS] == [1, 0, 0]


def test_results_come_back_from_their_file_and_the_last_of_each_counts(tmp_path):
    file = tmp_path / "run.jsonl"
    failed = replace(_measurement("same", ()), findings=(), failure="crashed")
    again = _measurement("same", {"tiny"})
    lines = ('{"machine": "x"}', encode(failed), encode(again))
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert read([file]) == [again]
