"""``--inject``: a slow-down of a known size, made on purpose and reported loudly."""

from __future__ import annotations

import pytest

from tests.builders.project import QUICK, Project, rows

STEADY = """\
import perfci

@perfci.benchmark
def steady():
    return lambda: sum(range(2000))
"""


LONG_START = f"import time\n\ntime.sleep(0.5)  # stands for the import of torch\n{STEADY}"


def with_benchmark(project: Project, source: str = STEADY) -> Project:
    project.write("benchmarks/bench_one.py", source)
    project.commit("a benchmark")
    return project


def test_an_injected_slow_down_is_found_and_told_in_every_format(project: Project) -> None:
    comment = project.folder.parent / "comment.md"
    report = with_benchmark(project).report(
        "compare",
        "HEAD",
        "HEAD",
        "--allow-same-commit",
        "--inject",
        "latency=200%",
        "--markdown",
        str(comment),
        code=1,
    )
    row = rows(report, "steady")["latency_p50"]
    assert row["status"] == "regressed"
    assert row["ratio"] == pytest.approx(3.0, abs=0.8)
    assert report["injected"] == {"latency": 2.0}
    assert "injected into head on purpose: latency +200 %" in comment.read_text()
    again = project.perfci("report", str(project.folder.parent / "report.json"))
    assert "injected into head on purpose" in again.text


@pytest.mark.processes
def test_memory_and_cold_start_can_be_injected(project: Project) -> None:
    project.write("pyproject.toml", QUICK.replace("max_rounds = 9", "max_rounds = 6"))
    report = with_benchmark(project, LONG_START).report(
        "compare",
        "HEAD",
        "HEAD",
        *("--inject", "peak_host_memory=40%", "--inject", "cold_start=200%"),
        code=1,
    )
    found = rows(report, "steady")
    assert found["peak_host_memory"]["ratio"] == pytest.approx(1.4, abs=0.1)
    assert found["cold_start"]["ratio"] == pytest.approx(3.0, abs=0.6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("speed=2%", "Keys here: latency"),
        ("latency=0", "`inject.latency` is 0"),
        ("latency=-1%", "Expected a share above 0"),
        ("latency=nan", "Expected a share above 0"),
        ("latency=2000%", 'at most "1000%"'),
        ("=", "write KEY=VALUE"),
    ],
)
def test_what_cannot_be_injected_is_told(project: Project, text: str, said: str) -> None:
    done = with_benchmark(project).perfci(
        "compare", "HEAD", "HEAD", "--allow-same-commit", "--inject", text
    )
    assert done.code == 2
    assert said in done.text
