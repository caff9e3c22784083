"""The quick part of benchmarks/statistics: whole reports, decided by the code that sessions use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.statistics.noise import MODELS, gaussian
from benchmarks.statistics.paths import CASES, GATING, PATHS, Compare, Outcome, policy_with
from benchmarks.statistics.scoring import wilson_interval
from benchmarks.statistics.tables import marked, rewritten, tables
from perfci.config.keys import MeasureSettings

ROOT = Path(__file__).parents[2]

BY_NAME = {model.name: model for model in MODELS}
POLICY = policy_with(0.05)


def reports(
    model: str, path: str, count: int, changes: Sequence[float] = (0.0,) * CASES
) -> list[Outcome]:
    rng = np.random.default_rng(11)
    return [PATHS[path](BY_NAME[model], rng, changes, POLICY) for _ in range(count)]


def coverage(outcomes: Sequence[Outcome], ratio: float = 1.0) -> float:
    rows = [row for outcome in outcomes for row in outcome.rows if row.ratio_lo is not None]
    return float(np.mean([row.ratio_lo <= ratio <= row.ratio_hi for row in rows]))


@pytest.mark.parametrize(
    "model",
    [
        "spread 2 %",
        "bimodal, half slow",
        "fork servers differ as rounds do",
        "serial 0.6",
        "heavy tails, t2",
        "one round in ten disturbed",
    ],
)
def test_identical_cases_hardly_ever_fail(model: str) -> None:
    outcomes = reports(model, "compare", 10)
    assert sum(outcome.verdict == "fail" for outcome in outcomes) <= 1


def test_all_of_five_rounds_of_two_speeds_alike_is_luck_and_not_a_regression() -> None:
    rng = np.random.default_rng(11)
    five = Compare(MeasureSettings(rounds=5, max_rounds=5), forks=False)
    model = BY_NAME["bimodal, half slow"]
    outcomes = [five(model, rng, (0.0,) * CASES, POLICY) for _ in range(80)]
    assert not any(outcome.verdict == "fail" for outcome in outcomes)
    assert any(
        f.code in {"looks-regressed", "looks-improved"}
        for outcome in outcomes
        for row in outcome.rows
        for f in row.findings
    )  # it did happen


@pytest.mark.parametrize("path", ["check, 1 session", "check, 3 sessions", "check, slow day"])
def test_a_check_of_identical_cases_passes_and_its_intervals_hold(path: str) -> None:
    outcomes = reports("spread 0.7 %", path, 25)
    assert {outcome.verdict for outcome in outcomes} == {"pass"}
    assert coverage(outcomes) >= 0.95


def test_intervals_that_are_corrected_for_looks_hold_more_often_where_the_first_look_decides() -> (
    None
):
    assert coverage(reports("spread 0.7 %", "compare", 60)) >= 0.975


def test_stopping_keeps_the_coverage_of_a_change_at_the_threshold() -> None:
    changes = [float(np.log(1.05))] * CASES
    outcomes = reports("spread 0.7 %", "compare", 15, changes)
    assert coverage(outcomes, 1.05) >= 0.92


def test_a_slow_down_of_twice_the_threshold_fails_at_the_usual_spread() -> None:
    changes = [float(np.log(1.10)), *[0.0] * (CASES - 1)]
    outcomes = reports("spread 0.7 %", "compare", 20, changes)
    assert {outcome.verdict for outcome in outcomes} == {"fail"}
    checked = reports("spread 0.7 %", "check, slow day", 20, changes)
    assert {outcome.verdict for outcome in checked} == {"fail"}
    assert all(outcome.rows[0].confirmed for outcome in checked)


def test_decided_cases_take_no_more_rounds() -> None:
    changes = [float(np.log(1.045)), *[0.0] * (CASES - 1)]
    (outcome,) = reports("spread 0.7 %", "compare", 1, changes)
    assert outcome.rounds[0] > 5
    assert np.mean(outcome.rounds[1:]) < 5.5


def test_bursts_side_by_side_see_less_of_a_busy_machine_than_the_sides_own_medians() -> None:
    beside = BY_NAME["bursts"]
    own = replace(beside, side_by_side=False)
    assert beside.spread() < 0.5 * own.spread()
    changes = [float(np.log(1.10)), *[0.0] * (CASES - 1)]
    (outcome,) = reports("bursts", "compare", 1, changes)
    assert [row.status for row in outcome.rows] == ["regressed", *["unchanged"] * (CASES - 1)]
    assert coverage(reports("bursts", "compare", 20)) > 0.9


def test_a_constant_of_one_side_is_found_and_is_no_noise_that_rounds_can_tell() -> None:
    outcomes = reports("layout, 1 % a side", "compare, fresh processes", 20)
    assert coverage(outcomes) < 0.7
    assert sum(any(row.p_adjusted < 0.01 for row in o.rows) for o in outcomes) > 10


def independent_reports(
    rng: np.random.Generator, count: int, tests: int, change: float
) -> tuple[float, float, float]:
    """Return three shares of reports of eight rounds, with a spread of 1 %, by numpy alone.

    Of reports whose first test, the only true change, is significant; whose next 19 have one that
    is; and of intervals of 95 % that hold. Paired t by the closed form for odd degrees of freedom
    (Abramowitz & Stegun 26.7.3), then Holm.
    """
    df = 7
    values = rng.normal(0.0, 0.01, (count, tests, df + 1))
    values[:, 0] += change
    center = values.mean(axis=-1)
    se = values.std(axis=-1, ddof=1) / np.sqrt(df + 1)
    angle = np.arctan(np.abs(center) / se / np.sqrt(df))
    cosine = np.cos(angle)
    terms = cosine + 2.0 / 3.0 * cosine**3 + 8.0 / 15.0 * cosine**5
    p = 1.0 - 2.0 / np.pi * (angle + np.sin(angle) * terms)
    order = np.argsort(p, axis=1)
    ranked = np.take_along_axis(p, order, axis=1) * (tests - np.arange(tests))
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.maximum.accumulate(ranked, axis=1), axis=1)
    significant = adjusted < 0.01
    truth = np.zeros(tests)
    truth[0] = change
    held = np.abs(center - truth) <= 2.364624251592785 * se
    return (
        float(significant[:, 0].mean()),
        float(significant[:, 1:CASES].any(axis=1).mean()),
        float(held[:, :CASES].mean()),
    )


def test_a_plain_cell_agrees_with_an_independent_simulation() -> None:
    change, count, independent = float(np.log(1.02)), 300, 4000
    model = replace(BY_NAME["spread 0.7 %"], own=gaussian(0.01))
    path = Compare(MeasureSettings(rounds=8, max_rounds=8), forks=False)
    rng = np.random.default_rng(17)
    changes = [change, *[0.0] * (CASES - 1)]
    outcomes = [path(model, rng, changes, policy_with(0.01)) for _ in range(count)]
    first = float(np.mean([outcome.rows[0].p_adjusted < 0.01 for outcome in outcomes]))
    others = float(np.mean([any(r.p_adjusted < 0.01 for r in o.rows[1:]) for o in outcomes]))
    rows = [row for outcome in outcomes for row in outcome.rows]
    truths = [1.02 if row.case == "case0" else 1.0 for row in rows]
    held = [row.ratio_lo <= true <= row.ratio_hi for row, true in zip(rows, truths, strict=True)]
    expected = independent_reports(
        np.random.Generator(np.random.Philox(5)), independent, GATING * CASES, change
    )
    seen = (first, others, float(np.mean(held)))
    for share, true, size in zip(seen, expected, (count, count, len(rows)), strict=True):
        error = np.sqrt(true * (1.0 - true) * (1.0 / size + 1.0 / independent))
        assert share == pytest.approx(true, abs=3.5 * float(error))
    assert 0.2 < expected[0] < 0.8  # or it would say little


def test_wilsons_interval_is_the_one_in_the_books() -> None:
    assert wilson_interval(10, 100) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert wilson_interval(0, 100) == pytest.approx((0.0, 0.0370), abs=1e-4)
    assert wilson_interval(100, 100) == pytest.approx((0.9630, 1.0), abs=1e-4)


def test_each_simulated_table_of_the_documentation_is_of_the_kept_counts() -> None:
    kept = ROOT / "benchmarks/statistics/results/simulation.json"
    made = tables(json.loads(kept.read_text(encoding="utf-8"))["results"])
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(name for page in pages for name in marked(page)) == sorted(made)
    assert [rewritten(page, made) for page in pages] == pages
