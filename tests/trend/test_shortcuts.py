"""Shortcuts that most series of a large history take give what the whole way gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from perfci.trend import (
    LoadedHistory,
    LoadedRun,
    LoadedSeries,
    SeriesKey,
    TrendSettings,
    change_points,
)
from perfci.trend.change_points import examine_all
from perfci.trend.changes import analyse
from perfci.trend.drift import _is_steady
from perfci.trend.health import series_gone
from perfci.trend.timelines import ArrangedHistory, _PlacedRuns, arrange
from tests.trend.histories import ENVIRONMENT, date, run, series, timelines, wobbling

NIGHTS = 60


def any_history(seed: int) -> LoadedHistory:
    """Return series whole, with gaps, in any order, of odd values, and with changed sources."""
    rng = np.random.default_rng(seed)
    runs = tuple(LoadedRun(ENVIRONMENT, run(number)) for number in range(NIGHTS))
    parts = []
    every = np.arange(NIGHTS, dtype=np.int32)
    for number in range(24):
        kept = np.sort(rng.choice(NIGHTS, NIGHTS - 20, replace=False))
        rows = every if number % 6 else kept
        if number in {4, 15}:
            rows = rng.permutation(rows)
        values = np.exp(rng.normal(0.0, 0.01, len(rows)))
        odd = (0.0, -1.0, np.nan, np.inf, 1e200, 1e-200, 1.0)[rng.integers(7)]
        if number % 4 == 3:
            values[rng.integers(len(values))] = odd
        key = SeriesKey(ENVIRONMENT, f"case_{number % 4}", f"metric_{number}")
        parts.append(LoadedSeries(key, "s", "lower", rows.astype(np.int32, copy=False), values))
    sources = {
        (ENVIRONMENT, f"case_{number}"): np.sort(rng.integers(-1, 3, NIGHTS)) for number in range(4)
    }
    return LoadedHistory({ENVIRONMENT: {}}, runs, tuple(parts), sources)


def plain(arranged: ArrangedHistory) -> list[object]:
    return [
        (one.key, one.unit, one.rows.tolist(), one.values.tolist(), one.source_changes)
        for one in arranged.series
    ]


@pytest.mark.parametrize("seed", range(8))
def test_a_series_that_is_taken_whole_is_the_one_that_was_put_together(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = any_history(seed)
    branch = [f"{number:040x}" for number in range(NIGHTS) if number != 7 or seed % 2]
    quick = arrange(loaded, order=branch)
    monkeypatch.setattr(_PlacedRuns, "whole", lambda *_: None)
    slow = arrange(loaded, order=branch)
    assert plain(quick) == plain(slow)
    assert quick.notes == slow.notes


def test_the_shortcut_is_taken_and_copies_nothing() -> None:
    loaded = any_history(3)
    whole = [part for part in loaded.series if len(part.values) == NIGHTS]
    taken = [one for one in arrange(loaded).series if any(one.values is p.values for p in whole)]
    assert len(taken) > 2
    assert len({id(one.rows) for one in taken}) < len(taken)


def test_steady_series_drift_as_little_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    many = []
    for number in range(60):
        values = wobbling(NIGHTS, level=1e-3, rho=0.0, seed=number)
        values[NIGHTS - 14 :] *= 1.0 + 0.01 * rng.integers(0, 8)
        first = int(rng.integers(0, 3))
        rows = np.arange(first, NIGHTS - (number % 7 == 3), dtype=np.int32)
        one = series(values[rows], f"case_{number:02}", rows=rows)
        many.append(replace(one, values=one.values - (1e-3 if number % 11 == 5 else 0.0)))
    settings = TrendSettings(alpha=1e-30)  # no change explains a drift
    steady = [_is_steady(one, NIGHTS - 14, settings) for one in many]
    assert 10 < sum(steady) < 50
    quick = analyse(many, timelines(NIGHTS), now=date(60), settings=settings).drifts
    monkeypatch.setattr("perfci.trend.drift._is_steady", lambda *_: False)
    assert quick == analyse(many, timelines(NIGHTS), now=date(60), settings=settings).drifts
    assert quick


def histories(seed: int, size: int) -> list[NDArray[Any]]:
    """Return noise alone, and with steps, walks, spikes, ramps, autocorrelation and gaps."""
    rng = np.random.default_rng(seed)
    nights = np.arange(size)
    many = []
    for number in range(42):
        noise = 0.01 * rng.standard_normal(size)
        at, jump = rng.integers(4, size - 4), rng.uniform(-0.08, 0.08)
        moves = (
            0.0 * nights,
            jump * (nights >= at),
            jump / 3 * (nights >= at),
            np.cumsum(0.003 * rng.standard_normal(size)),
            0.2 * (rng.random(size) < 0.02),
            jump * np.clip((nights - at) / 40, 0.0, 1.0),
            lfilter([0.01], [1.0, -0.6], rng.standard_normal(size)),
        )
        values = np.exp(noise + moves[number % len(moves)])
        many.append(values if number % 2 else values[rng.random(size) < 0.9])
    return many


@pytest.mark.parametrize("size", [40, 120, 365])
def test_a_series_without_a_strong_candidate_has_no_move(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = TrendSettings()
    many = [values[:end] for values in histories(size, size) for end in range(size - 4, size + 1)]
    quick = examine_all(many, settings)
    monkeypatch.setattr(change_points, "STRONGEST_CANDIDATE", 0.0)
    assert examine_all(many, settings) == quick
    assert any(quick)
    monkeypatch.setattr(change_points, "STRONGEST_CANDIDATE", 99.0)
    assert not any(examine_all(many, settings))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_gone_is_counted_in_days_with_runs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (line,) = timelines(NIGHTS).values()
    days = rng.permutation(NIGHTS) if seed % 2 else np.arange(NIGHTS) // 2
    runs = tuple(
        replace(one, measured_at=date(int(day)), committed_at="")
        for one, day in zip(line.runs, days, strict=True)
    )
    lines = {ENVIRONMENT: replace(line, runs=runs)}
    many = []
    for number in range(NIGHTS):
        rows = np.sort(rng.choice(NIGHTS, 1 + number // 6, replace=False)).astype(np.int32)
        many.append(series(np.ones(len(rows)), f"case_{number}", rows=rows))
    measured = sorted(set(days.tolist()))
    expected = {
        one.key
        for one in many
        if sum(day > max(days[one.rows]) for day in measured) >= 14
    }  # fmt: skip
    assert series_gone(lines, many, ()) == expected
    assert 0 < len(expected) < NIGHTS
