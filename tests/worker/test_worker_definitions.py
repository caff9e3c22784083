"""Each way to write a benchmark wrongly is answered with its place and what to write instead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import perfci
from tests.worker.driver import Bench

WRONG = sorted((Path(__file__).parent.parent / "data" / "wrong").glob("bench_*.py"))


@pytest.fixture
def bench(forked_bench: Bench) -> Bench:
    return forked_bench


@pytest.mark.parametrize("path", WRONG, ids=[path.stem.removeprefix("bench_") for path in WRONG])
def test_it_is_told_with_file_and_line(bench: Bench, path: Path) -> None:
    shutil.copy(path, bench.folder)
    found = bench.discover()
    (failure,) = found["failures"]
    assert not found["cases"]
    assert failure["kind"] == "BenchmarkError"
    lines = path.read_text().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if text.startswith("@perfci.benchmark"))
    message, advice = failure["message"].split("\n", 1)
    assert message.startswith(f"benchmarks/{path.name}:{line}: ")
    assert advice


def test_every_check_of_a_definition_has_a_wrong_file() -> None:
    assert len(WRONG) >= 19


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("threshold=-5", "threshold"),
        ("threshold=float('nan')", "threshold"),
        ("threshold=float('inf')", "threshold"),
        ("threshold='five'", "threshold"),
        ("threshold=5", "threshold"),
        ("gate='evil'", "gate"),
        ("gate=[]", "gate"),
        ("direction='sideways'", "direction"),
        ("unit='a\\nb'", "unit"),
        ("unit=3", "unit"),
    ],
)
def test_a_metric_written_wrongly_is_told_with_file_and_line(
    bench: Bench, options: str, told: str
) -> None:
    failed = bench.failure(
        "import perfci\n\n@perfci.benchmark\ndef case():\n    return (\n        lambda: None,\n"
        f"        perfci.metric('hits', lambda: 1, {options}),\n    )\n"
    )
    assert failed["kind"] == "BenchmarkError"
    assert failed["message"].startswith(f"benchmarks/bench_one.py:7: perfci.metric: its `{told}`")


def test_a_threshold_is_a_share_or_for_what_may_be_zero_an_amount() -> None:
    @perfci.benchmark(thresholds={"latency_p50": "3%", "cold_start": 0.2, "graph_breaks": 2})
    def case() -> None: ...

    assert case.thresholds == {"latency_p50": 0.03, "cold_start": 0.2, "graph_breaks": 2.0}
    assert perfci.metric("hits", lambda: 1.0, threshold="250%").metric.threshold == 2.5
