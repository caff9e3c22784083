"""Modes beside each other: which helps, what it costs, and what can't be said."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from perfci.model.report import Comparison, Estimate
from perfci.report.case_tables import mode_matrices, without_mode
from perfci.stats.evidence import summarise
from tests.report.case_table_reports import HELPS, USELESS, mode_rows
from tests.report.examples import row


@pytest.mark.parametrize(
    ("case", "split"),
    [
        ("encoder[batch=1,mode=eager]", ("encoder[batch=1]", "eager")),
        ("encoder[mode=backend:eager,batch=1]", ("encoder[batch=1]", "backend:eager")),
        ("saved[mode=default]", ("saved", "default")),
        ("encoder[batch=1]", None),
        ("tokenise", None),
        ("a[mode=x,mode=y]", None),
        ("[mode=x]", None),
        ("a[mode=x]b", None),
        ("", None),
    ],
)
def test_a_cases_mode_is_told_from_the_rest(case: str, split: tuple[str, str] | None) -> None:
    assert without_mode(case) == split


def test_of_modes_about_as_fast_the_soonest_compiled_is_to_be_used() -> None:
    rows = [
        replace(row, head=Estimate(60.0, 60.0, 60.0, 6, 6))
        if row.metric == "compile_time" and "max-autotune" in row.case
        else row
        for row in mode_rows(HELPS)
    ]
    (matrix,) = mode_matrices(rows)
    assert (matrix.advice, matrix.best) == ("use", "default")
    slow = {mode: took if mode != "default" else 0.8e-3 for mode, took in HELPS.items()}
    (matrix,) = mode_matrices(mode_rows(slow))
    assert (matrix.advice, matrix.best) == ("use", "reduce-overhead")


def test_compiling_pays_after_the_calls_that_save_as_much() -> None:
    (matrix,) = mode_matrices(mode_rows({"eager": 2e-3, "default": 1e-3, "max-autotune": 3e-3}))
    eager, default, tuned = matrix.rows
    assert default.pays_after == pytest.approx(12_000, abs=2)
    assert default.pays_after_cached == pytest.approx(1_500, abs=2)
    assert (eager.pays_after, eager.speedup, tuned.pays_after) == (None, None, None)
    assert default.speedup == pytest.approx(2.0)


def test_no_mode_helps_where_every_interval_ends_below_the_threshold() -> None:
    (matrix,) = mode_matrices(mode_rows(USELESS))
    assert (matrix.advice, matrix.best) == ("none", "eager")


def test_a_wide_spread_decides_nothing() -> None:
    (matrix,) = mode_matrices(mode_rows(USELESS, spread=0.3))
    assert (matrix.advice, matrix.best) == ("undecided", "")


def test_fewer_than_five_processes_have_no_interval_and_no_advice() -> None:
    (matrix,) = mode_matrices(mode_rows(HELPS, workers=4))
    assert matrix.advice == "undecided"
    assert matrix.rows[1].speedup is not None
    assert matrix.rows[1].speedup_lo is None


def test_without_eager_or_another_mode_there_is_no_matrix() -> None:
    assert mode_matrices(mode_rows({"eager": 1e-3})) == ()
    assert mode_matrices(mode_rows({"train": 1e-3, "eval": 1e-3})) == ()
    assert mode_matrices([row("tokenise", "latency_p50", 1.0, 1.0, "unchanged")]) == ()


def test_what_base_was_to_use_is_known_and_a_mode_that_moved_is_named() -> None:
    (matrix,) = mode_matrices(mode_rows(USELESS, base=HELPS))
    assert (matrix.base_advice, matrix.base_best, matrix.table().changed) == (
        "use",
        "default",
        True,
    )
    (same,) = mode_matrices(mode_rows(HELPS, base=HELPS))
    assert not same.table().changed
    rows = [
        replace(row, status="regressed")
        if row.metric == "compile_time" and "default" in row.case
        else row
        for row in mode_rows(HELPS, base=HELPS)
    ]
    (moved,) = mode_matrices(rows)
    assert (moved.moved, moved.table().changed) == (("default",), True)


def test_numbers_at_the_ends_of_floats_are_computed_with() -> None:
    eager, default = (
        row(f"x[mode={mode}]", "latency_p50", took, took, "unchanged", p=None)
        for mode, took in (("eager", 1e300), ("default", 1e-300))
    )
    (matrix,) = mode_matrices([eager, default])
    assert all(math.isfinite(one.speedup or 0.0) for one in matrix.rows)


def test_of_modes_that_are_no_faster_one_in_a_hundred_is_recommended_at_most() -> None:
    rng = random.Random(20261122)
    wrong = sum(_advice(rng, speedup=1.05) == "use" for _ in range(2000))
    assert wrong <= 33  # three standard errors above 1 % of 2,000: 20 + 3 * 4.4
    right = sum(_advice(rng, speedup=1.2) == "use" for _ in range(200))
    assert right >= 190


def _advice(rng: random.Random, speedup: float) -> str:
    """Return the advice on three modes of eight processes each that spread by 2 %."""
    rows = []
    for mode in ("eager", "default", "reduce-overhead", "max-autotune"):
        scale = 1e-3 if mode == "eager" or speedup < 1.1 else 1e-3 / speedup
        values = [scale * math.exp(rng.gauss(0.0, 0.02)) for _ in range(8)]
        rows.append(_of(mode, values))
    (matrix,) = mode_matrices(rows)
    return matrix.advice


def _of(mode: str, values: list[float]) -> Comparison:
    known = summarise(values)
    head = Estimate(known.center, known.lo, known.hi, 8, 800, tuple(values))
    return replace(row(f"x[mode={mode}]", "latency_p50", 1.0, 1.0, "new"), base=None, head=head)
