"""Compile time: sides that compiled the same graphs to the same code don't differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from perfci.metrics.graphs import generated_code
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from tests.verdict.workers import case, held_to, side, worker


def compiled(base: str, head: str, slower: float) -> str:
    before = side("base", "compile_time", [8.0] * 5)
    after = side("head", "compile_time", [slower * 8.0 * v for v in (1.0, 1.01, 0.99, 1.0, 1.0)])
    rows = compare_case(
        case(),
        [replace(output, generated_code=base) for output in before],
        [replace(output, generated_code=head) for output in after],
        Policy(),
        paired=True,
    )
    (row,) = adjust(rows, Policy())
    return row.status


@pytest.mark.parametrize(
    ("base", "head", "slower", "status"),
    [
        ("a1", "a1", 1.2, "unchanged"),
        ("a1", "a1", 1.4, "regressed"),  # code that runs while compiling, such as a traced loop
        ("a1", "b2", 1.2, "regressed"),
        ("", "", 1.2, "regressed"),
    ],
)
def test_the_same_code_takes_about_as_long(
    base: str, head: str, slower: float, status: str
) -> None:
    assert compiled(base, head, slower) == status


@pytest.mark.parametrize("count", ["captured_calls", "generated_kernels"])
@pytest.mark.parametrize(
    ("pairs", "more", "threshold", "status"),
    [
        ([1.33], 2, 0.1, "inconclusive"),
        ([1.5], 2, 0.1, "regressed"),
        ([1.5], 0, 0.1, "inconclusive"),
        ([1.33, 1.28], 2, 0.1, "regressed"),
        ([1.33, 1.28], 0, 0.1, "inconclusive"),
        ([1.33, 1.28], 2, 0.5, "inconclusive"),
        ([1.33, 1.1], 2, 0.1, "inconclusive"),
        ([1.33, 1.12, 1.28], 2, 0.1, "regressed"),
        ([3.0], 0, 0.1, "regressed"),  # max-autotune tries more and generates as much
        ([3.0], -3, 0.1, "regressed"),
    ],
)
def test_more_than_pairs_of_one_commit_differ_by_is_slower(
    count: str, pairs: list[float], more: int, threshold: float, status: str
) -> None:
    values = [{"compile_time": 8.0, count: 8.0} for _ in pairs]
    head = [{"compile_time": 8.0 * ratio, count: 8.0 + more} for ratio in pairs]
    policy = Policy(metrics=held_to("compile_time", threshold, "fail"))
    rows = compare_case(
        case(),
        [worker("base", n, each, generated_code="a1") for n, each in enumerate(values, 1)],
        [worker("head", n, each, generated_code="b2") for n, each in enumerate(head, 1)],
        policy,
        paired=True,
    )
    (row,) = (row for row in adjust(rows, policy) if row.metric == "compile_time")
    assert row.status == status
    assert row.ratio == pytest.approx(median(pairs), rel=0.06)


def cache(folder: Path, *, kernel: str = "ckernel", graph: str = "fgraph") -> Path:
    for name in (f"ab/{kernel}.py", "cd/cother.main.cpp", "cd/cother.main.so", "locks/x.lock"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "fxgraph/fg" / graph).mkdir(parents=True)
    return folder


def test_a_digest_is_of_code_and_graphs_alone(tmp_path: Path) -> None:
    first = generated_code(cache(tmp_path / "a"))
    same = cache(tmp_path / "b")
    (same / "ab/ckernel.so").touch()
    (same / "locks/y.lock").touch()
    assert generated_code(same) == first
    assert generated_code(cache(tmp_path / "c", kernel="cfaster")) != first
    assert generated_code(cache(tmp_path / "d", graph="ftuned")) != first
    assert generated_code(tmp_path / "nothing") == ""
