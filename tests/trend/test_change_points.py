"""What is a change and what is none, in one series."""

import math
from itertools import pairwise

import numpy as np
import pytest

from perfci.trend import Move, TrendSettings
from perfci.trend.change_points import examine_all
from tests.trend.histories import examine, wobbling

SETTINGS = TrendSettings()


def found(values: np.ndarray) -> tuple[Move, ...]:
    return examine(np.asarray(values, dtype=np.float64), SETTINGS)


def stepped(at: int, ratio: float, **fields: object) -> np.ndarray:
    values = wobbling(**fields)
    values[at:] *= ratio
    return values


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_a_step_is_found_where_and_as_large_as_it_is(rho):
    (move,) = found(stepped(70, 1.06, rho=rho))

    assert (move.kind, move.before, move.after) == ("step", 69, 70)
    assert move.ratio_lo < 1.06 < move.ratio_hi
    assert move.ratio_hi - move.ratio_lo < 0.04


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_the_true_night_is_in_the_range_told_and_large_steps_have_small_ones(rho):
    outside, wide = 0, {1.02: 0, 1.2: 0}
    for seed in range(100):
        for ratio in wide:
            moves = found(stepped(70, ratio, rho=rho, seed=seed))
            if len(moves) == 1:
                before, after = moves[0].within
                assert before <= moves[0].before < moves[0].after <= after
                outside += not before < 70 <= after
                wide[ratio] += after - before > 1

    assert outside <= 10  # of 200 at most
    assert wide[1.2] == 0
    assert wide[1.02] > 50 * (1 - rho)


def test_several_steps_are_found_each():
    values = wobbling(200)
    for at, ratio in ((40, 1.05), (90, 0.93), (150, 1.06)):
        values[at:] *= ratio

    assert [move.after for move in found(values)] == pytest.approx([40, 90, 150], abs=1)


@pytest.mark.parametrize("at", [0, 1, 60, 118, 119])
@pytest.mark.parametrize("ratio", [0.5, 1.1, 1.5, 10.0])
def test_one_odd_night_is_never_a_change(at, ratio):
    values = wobbling()
    values[at] *= ratio

    assert found(values) == ()


def test_noise_in_two_modes_is_no_change_and_hides_none():
    slow = np.random.default_rng(1).random(300) < 0.3
    values = wobbling(300, rho=0.0) * np.where(slow, 1.04, 1.0)
    assert found(values) == ()

    values[150:] *= 1.05
    (move,) = found(values)

    assert abs(move.after - 150) <= 2


@pytest.mark.parametrize("seed", range(4))
def test_a_slow_ramp_is_one_change_with_its_begin_and_end(seed):
    share = np.clip((np.arange(300) - 99) / 50, 0, 1)

    (move,) = found(wobbling(300, seed=seed) * np.exp(0.1 * share))

    assert move.kind == "ramp"
    assert abs(move.before - 99) <= 10
    assert abs(move.after - 149) <= 10
    assert move.ratio == pytest.approx(np.exp(0.1), rel=0.015)


def test_a_level_that_wanders_has_to_jump_further():
    path = np.cumsum(np.random.default_rng(4).standard_normal(400)) * 0.003
    wandering = wobbling(400, rho=0.0) * np.exp(path)
    assert len(found(wandering)) <= 2

    wandering[200:] *= 1.2

    assert any(abs(move.after - 200) <= 2 for move in found(wandering))


def test_an_exact_value_that_stays_two_nights_is_a_change_and_a_sure_one():
    (move,) = found([17.0] * 20 + [18.0] * 2)

    assert (move.before, move.after) == (19, 20)
    assert move.p < 1e-12
    assert move.ratio_lo == pytest.approx(18 / 17) == move.ratio_hi


def test_a_count_that_was_zero_has_a_difference_and_no_ratio():
    (move,) = found([0.0] * 10 + [3.0] * 3)

    assert move.ratio is None
    assert move.level_after - move.level_before == pytest.approx(3.0)


def test_a_change_below_the_floor_is_not_named():
    values = [1000.0] * 20 + [1004.0] * 20

    assert found(values) == ()
    assert len(examine(np.array(values), TrendSettings(floor=0.001))) == 1


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e12])
def test_the_unit_of_the_values_does_not_matter(scale):
    values = stepped(70, 1.06)

    (plain,), (scaled,) = found(values), found(values * scale)

    assert (scaled.before, scaled.after) == (plain.before, plain.after)
    assert scaled.ratio == pytest.approx(plain.ratio)
    assert scaled.p == pytest.approx(plain.p, rel=1e-6)


def test_backwards_a_slowdown_is_a_speedup_of_the_same_size():
    values = stepped(70, 1.06)

    (forward,), (backward,) = found(values), found(values[::-1])

    assert backward.after == len(values) - forward.after
    assert backward.ratio == pytest.approx(1 / forward.ratio, rel=1e-6)


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_quiet_series_have_less_than_one_false_alarm_in_1000_points(rho):
    series = [wobbling(120, rho=rho, seed=seed) for seed in range(150)]

    alarms = sum(len(found(values)) for values in series)

    assert 1000 * alarms / (120 * len(series)) <= 0.2


@pytest.mark.parametrize("curve", [np.linspace, np.geomspace])
@pytest.mark.parametrize("ends", [(1.0, 10.0), (10.0, 1.0), (1.0, 2.0)])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
@pytest.mark.parametrize("size", [365, 2000])
def test_no_rise_is_counted_twice(curve, ends, noise, size):
    seed = np.random.default_rng(size)
    values = curve(*ends, size) * np.exp(noise * seed.standard_normal(size))

    moves = found(values)

    assert all(one.after <= two.before for one, two in pairwise(moves))
    told = abs(math.fsum(math.log(move.ratio) for move in moves))
    assert told < 1.05 * abs(math.log(ends[1] / ends[0]))


def any_series(rng: np.random.Generator) -> np.ndarray:
    """Return noise of some length and kind: with steps, ramps, odd runs, whole numbers, a walk."""
    size = int(rng.choice((5, 6, 7, 8, 13, 60, 200)))
    noise = rng.normal(0.0, rng.choice((0.0, 0.001, 0.01, 0.05)), size)
    levels = noise + rng.uniform(0.0, 0.6) * np.append(0.0, noise[:-1])
    for begin in rng.integers(0, size, rng.integers(0, 4)):
        levels[begin:] += rng.normal(0.0, 0.1)
    match rng.integers(0, 6):
        case 0:
            return np.round(100.0 * np.exp(levels))
        case 1:
            return levels
        case 2:
            return 10.0 + np.cumsum(levels)
        case 3:
            levels += np.linspace(0.0, 0.3, size)
        case 4:
            levels[rng.integers(0, size, 2)] += 1.0
    return np.exp(levels)


def test_each_of_many_series_has_the_very_answer_that_it_has_alone() -> None:
    rng = np.random.default_rng(0)
    many = [any_series(rng) for _ in range(600)]
    alone = [examine(values, TrendSettings()) for values in many]
    assert sum(map(len, alone)) > 120
    assert examine_all(many, TrendSettings()) == alone
    assert examine_all(many[280:], TrendSettings()) == alone[280:]


def test_a_new_level_is_held_back_while_three_runs_at_the_old_one_would_undo_it(monkeypatch):
    def first_report(seed: int) -> int:
        values = stepped(100, 1.03, size=130, rho=0.0, seed=seed)
        return next(size for size in range(104, 131) if found(values[:size]))

    held = [first_report(seed) for seed in range(12)]
    monkeypatch.setattr("perfci.trend.change_points.TURNING", 0)
    early = [first_report(seed) for seed in range(12)]

    assert all(a <= b <= a + 4 for a, b in zip(early, held, strict=True))
    assert sum(held) > sum(early)
