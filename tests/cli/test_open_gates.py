"""A gate that is switched off, in part or in whole, is reported where that is done."""

from __future__ import annotations

import pytest

from perfci.metrics import METRICS
from tests.builders.project import Project, rows

SKIPPED = """\
import perfci
import lib

@perfci.benchmark(skip=lambda: None if hasattr(lib, "work") else "no work")
def counting():
    return lib.work

@perfci.benchmark
def steady():
    return lambda: sum(range(500))
"""


def test_metrics_that_all_inform_only_make_no_pass(project: Project) -> None:
    project.counting(1000)
    with (project.folder / "pyproject.toml").open("a") as file:
        gates = (name for name, metric in METRICS.items() if metric.gate == "fail")
        for name in gates:
            file.write(f'[tool.perfci.metrics.{name}]\ngate = "info"\n')
    project.commit("base")
    report = project.report(
        "compare", "HEAD", "--allow-same-commit", "-k", "steady", "--rounds", "2"
    )
    assert report["verdict"]["status"] == "inconclusive"
    assert report["verdict"]["reasons"][0].startswith("nothing gates")
    assert "-k 'steady' left out 1 of 2 cases." in report["notes"]


def test_a_case_that_only_head_skips_is_removed(project: Project) -> None:
    project.commit("base", **{"benchmarks/bench_a.py": SKIPPED, "lib.py": "work = int\n"})
    project.write("lib.py", "")
    report = project.report("compare", "HEAD", "--rounds", "2")
    assert {row["status"] for row in rows(report, "counting").values()} == {"removed"}
    assert report["skipped"] == {"counting": "no work"}


def test_a_file_of_benchmarks_that_the_pattern_leaves_out_is_named(project: Project) -> None:
    project.counting(1000)
    text = "import perfci\n\n@perfci.benchmark\ndef fresh():\n    return int\n"
    project.write("benchmarks/benchmark_fresh.py", text)
    project.write("benchmarks/shapes.py", "SIZE = 3\n")
    project.commit("base")
    done = project.perfci("list").without_traceback()
    assert done.code == 0
    assert "benchmarks/benchmark_fresh.py writes benchmarks that are not measured" in done.err
    assert "`pattern`, bench_*.py" in done.err
    assert "shapes" not in done.err
    for number in range(4):
        project.write(f"benchmarks/benchmark_more{number}.py", text)
    project.commit("more")
    done = project.perfci("list").without_traceback()
    more = "more1.py and 2 more write benchmarks that are not measured: their names don't match"
    assert more in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("file", "rules", "named"),
    [
        ("pyproject.toml", "[tool.perfci.metrics.latency_p50]\ngate = 'info'\n", "latency_p50"),
        ("pyproject.toml", "[tool.perfci.thresholds.work]\nlatency_p50 = 0.5\n", "thresholds"),
        ("perfci.toml", "alpha = 1e-6\n", "alpha"),
        ("perfci.toml", "allow_broken = ['*']\n", "allow_broken"),
        ("perfci.toml", "seed = 3\n", ""),
    ],
)
def test_rules_that_head_changes_are_named(
    project: Project, file: str, rules: str, named: str
) -> None:
    project.counting(1000)
    if file == "perfci.toml":
        project.write(file, "rounds = 2\n")
    project.commit("base")
    with (project.folder / file).open("a") as opened:
        opened.write(rules)
    project.commit("head")
    report = project.report("compare", "HEAD~1", "HEAD", "--rounds", "2")
    notes = [note for note in report["notes"] if "other rules than in HEAD~1" in note]
    assert [named in note for note in notes] == ([True] if named else [])


def test_rules_are_named_where_base_has_no_configuration(project: Project) -> None:
    path = project.folder / "pyproject.toml"
    rules = f"{path.read_text()}\n[tool.perfci.metrics.latency_p95]\ngate = 'info'\n"
    path.unlink()
    project.counting(1000)
    project.commit("base")
    path.write_text(rules)
    project.commit("head")
    report = project.report("compare", "HEAD~1", "HEAD", "--rounds", "2")
    assert any("other rules than in HEAD~1" in note for note in report["notes"])
