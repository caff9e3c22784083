"""A whole report: ids that last, statuses, false-discovery control, drift."""

from dataclasses import replace

import numpy as np
import pytest

from perfci.stats.evidence import benjamini_hochberg
from perfci.trend import Analysis, Change, KnownChange, Timeline, TrendSettings
from perfci.trend.changes import analyse
from tests.trend.histories import ENVIRONMENT, date, run, series, timelines, wobbling

NOW = "2026-11-21T00:00:00Z"


def report(*many, size=200, known=(), now=NOW, **settings) -> Analysis:
    return analyse(many, timelines(size), known=known, now=now, settings=TrendSettings(**settings))


def stepped(*steps, size=120, seed=0) -> np.ndarray:
    values = wobbling(size, seed=seed)
    for at, ratio in steps:
        values[at:] *= ratio
    return values


def remembered(change: Change, **fields: object) -> KnownChange:
    known = KnownChange(change.id, change.series, *change.names, change.worse, change.first_seen_at)
    return replace(known, **fields)


def test_a_change_says_between_which_commits_and_when():
    (change,) = report(series(stepped((70, 1.06)))).changes

    assert change.commits == (f"{69:040x}", f"{70:040x}")
    assert change.at == timelines(200)["machine"].runs[70].committed_at
    assert (change.status, change.first_seen_at, change.worse) == ("new", NOW, True)
    assert change.difference == pytest.approx(6.0, abs=0.7)


def test_more_of_a_metric_that_should_be_high_is_no_regression():
    (change,) = report(series(stepped((70, 1.06)), direction="higher", unit="items/s")).changes

    assert not change.worse


def test_a_known_change_keeps_its_id_though_newer_nights_move_it():
    values = stepped((70, 1.06))
    (first,) = report(series(values)).changes
    moved = remembered(first, sha_before=f"{67:040x}", sha_after=f"{68:040x}", id="kept")

    (again,) = report(series(values), known=[moved], now="later").changes

    assert (again.id, again.status, again.first_seen_at) == ("kept", "known", NOW)


def test_a_small_change_is_known_again_wherever_it_may_lie():
    values = stepped((70, 1.02), seed=5)
    (first,) = report(series(values)).changes
    before, after = first.within
    assert first.commits_within == (f"{before:040x}", f"{after:040x}")
    assert after - first.after > 4
    inside, outside = (
        remembered(first, sha_before=f"{at - 1:040x}", sha_after=f"{at:040x}", id="kept")
        for at in (after, after + 4)
    )

    assert [one.id for one in report(series(values), known=[inside]).changes] == ["kept"]
    assert [one.id for one in report(series(values), known=[outside]).changes] == [first.id]


def test_a_change_far_away_or_the_other_way_is_another_one():
    values = stepped((70, 1.06))
    (first,) = report(series(values)).changes
    far = remembered(first, sha_before=f"{20:040x}", sha_after=f"{21:040x}", id="far")
    better = remembered(first, worse=False, id="better")

    analysed = report(series(values), known=[far, better])

    assert [(c.id, c.status) for c in analysed.changes] == [(first.id, "new")]
    assert [one.id for one in analysed.withdrawn] == ["far", "better"]


def test_a_change_that_was_reported_stays_until_the_evidence_turns():
    values = wobbling(120, rho=0.0, seed=3)
    values[100:] *= 1.012  # too little to be named after a search
    assert report(series(values)).changes == ()
    named = KnownChange("named", series(values).key, f"{99:040x}", f"{100:040x}", True, NOW)

    assert [one.id for one in report(series(values), known=[named]).changes] == ["named"]
    values[105:] /= 1.012
    turned = report(series(values), known=[named])
    assert (turned.changes, [one.id for one in turned.withdrawn]) == ((), ["named"])
    again = report(series(values), known=[replace(named, withdrawn=True)])
    assert again.withdrawn == ()


def test_a_reported_change_that_goes_back_within_days_is_fixed_and_not_forgotten():
    values = wobbling(120, rho=0.0, seed=3)
    values[100:106] *= 1.1
    assert report(series(values)).changes == ()
    named = KnownChange("named", series(values).key, f"{99:040x}", f"{100:040x}", True, NOW)

    changes = report(series(values), known=[named]).changes

    assert [(one.id, one.status) for one in changes if one.worse] == [("named", "fixed")]


def test_the_id_does_not_depend_on_what_came_later():
    values = stepped((70, 1.06), (150, 0.9), size=200)

    early = report(series(values[:100])).changes
    late = report(series(values)).changes

    assert early[0].id in {change.id for change in late}


def test_a_change_without_commits_keeps_its_id():
    lines = timelines(120)
    bare = {
        key: replace(line, runs=tuple(replace(one, sha="") for one in line.runs))
        for key, line in lines.items()
    }
    one = series(stepped((70, 1.06)))
    (first,) = analyse([one], bare, now=NOW).changes

    (again,) = analyse([one], bare, known=[remembered(first)], now="later").changes

    assert (again.id, again.status) == (first.id, "known")
    moved = remembered(first, id="kept", sha_before="run-67", sha_after="run-68")
    (again,) = analyse([one], bare, known=[moved], now="later").changes
    assert (again.id, again.status) == ("kept", "known")


def test_an_acknowledged_change_says_so_with_its_note():
    values = stepped((70, 1.06))
    (first,) = report(series(values)).changes
    known = remembered(first, acknowledged=True, note="wanted")

    (again,) = report(series(values), known=[known]).changes

    assert (again.status, again.note) == ("acknowledged", "wanted")


def test_a_regression_is_fixed_when_the_old_level_is_back():
    regression, fix = report(series(stepped((50, 1.06), (90, 1 / 1.06)))).changes

    assert (regression.worse, regression.status) == (True, "fixed")
    assert (fix.worse, fix.status) == (False, "new")


def test_a_change_where_the_benchmark_itself_changed_says_so():
    values = stepped((70, 1.06))

    (there,) = report(series(values, source_changes=(70,))).changes
    (elsewhere,) = report(series(values, source_changes=(30,))).changes

    assert there.benchmark_changed
    assert not elsewhere.benchmark_changed


def test_a_weak_change_is_named_alone_but_not_among_thousands_of_quiet_series():
    weak = stepped((90, 1.012), seed=9)
    (alone,) = report(series(weak), alpha=0.05).changes
    assert alone.q == alone.p > 1e-5

    crowd = [series(np.full(5, 1.0), str(i)) for i in range(5_000)]

    assert report(series(weak), *crowd, alpha=0.05).changes == ()


def test_q_values_are_those_of_benjamini_and_hochberg():
    # as of p.adjust(…, "BH") in R
    q_values = benjamini_hochberg([0.01, 0.04, 0.03, 0.005, 0.6], 5)

    assert q_values == pytest.approx([0.025, 0.05, 0.05, 0.025, 0.6])


def test_false_discoveries_stay_rare_where_metrics_of_a_case_move_together():
    rng = np.random.default_rng(4)
    shares = []
    for _ in range(150):
        shared = rng.standard_normal((100, 1))
        z = 0.8 * shared + 0.6 * rng.standard_normal((100, 5)) * rng.choice([-1, 1], 5)
        z[:10] += 4.0
        p = np.array([2 * 0.5 * np.exp(-(abs(x) ** 2) / 2) for x in z.ravel()])  # bounds the tail
        named = np.array(benjamini_hochberg(p.tolist(), p.size)) <= 0.05
        shares.append(named[50:].sum() / max(1, named.sum()))

    assert np.mean(shares) <= 0.05


def test_many_small_steps_that_no_one_is_named_for_are_a_drift():
    creeping = wobbling(200, rho=0.0) * np.exp(0.05 * np.arange(200) / 200)
    # a floor that no single move of this series reaches
    (drift,) = report(series(creeping), floor=0.2).drifts

    assert drift.worse
    assert drift.ratio_lo < 1.045 < drift.ratio_hi
    assert (drift.days, drift.baseline_sha) == (14, f"{0:040x}")


def test_a_drift_that_a_named_change_explains_is_not_told_twice():
    analysed = report(series(stepped((70, 1.1), size=200)))

    assert len(analysed.changes) == 1
    assert analysed.drifts == ()


def test_an_acknowledged_level_is_what_drift_is_told_from():
    creeping = wobbling(200, rho=0.0)
    creeping[60:] *= 1.3
    (first,) = report(series(creeping)).changes
    creeping[60:] *= np.exp(0.05 * np.arange(140) / 140)
    known = remembered(first, acknowledged=True)

    (drift,) = report(series(creeping), known=[known], floor=0.2).drifts

    assert drift.baseline_sha == f"{60:040x}"
    assert 1.02 < drift.ratio < 1.06


def test_quiet_series_drift_nowhere():
    analysed = report(*(series(wobbling(200, seed=seed), str(seed)) for seed in range(50)))

    assert analysed.drifts == ()


def test_a_step_between_nights_of_one_commit_is_dated_by_the_measurement():
    nights = tuple(run(7, id=f"run{day}", measured_at=date(20 + day)) for day in range(60))
    values = stepped((20, 1.1), (40, 1.1), size=60)

    found = analyse([series(values)], {ENVIRONMENT: Timeline(ENVIRONMENT, nights)}, now=NOW).changes

    assert {change.at for change in found} == {date(40), date(60)}
    assert all(change.same_commit for change in found)
    assert len({change.id for change in found}) == 2


@pytest.mark.parametrize(
    ("values", "few"),
    [
        ([1.0, 1.0, 1.0, 1.0], True),
        ([1.0, 1.0, 1.0, 1.0, 1.0], False),
        ([1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.97], True),
        ([1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.97, 1.01], False),
    ],
)
def test_with_too_few_nights_a_series_is_said_to_be_untold(values, few):
    one = series(np.array(values))

    analysed = report(one)

    assert analysed.too_few == (frozenset({one.key}) if few else frozenset())
