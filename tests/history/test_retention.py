"""Thinning keeps what a change is seen by, and the two ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from perfci.history.conversion import superfluous
from perfci.model.run import RunHeader
from perfci.trend import KnownChange
from tests.builders.recorded import change

BEGIN = datetime(2025, 1, 6, 3, tzinfo=UTC)  # a Monday
DAYS = 400
NOW = BEGIN + timedelta(days=DAYS)


def nights(days: int = DAYS) -> list[RunHeader]:
    return [
        RunHeader(
            id=f"run-{day}",
            source="nightly",
            sha=f"{day:040x}",
            subject="",
            branch="main",
            committed_at=(BEGIN + timedelta(days=day, hours=-2)).isoformat(),
            measured_at=(BEGIN + timedelta(days=day)).isoformat(),
            position=day,
            runner="lab",
        )
        for day in range(days)
    ]


def kept(gone: tuple[str, ...], days: int = DAYS) -> list[int]:
    return [day for day in range(days) if f"run-{day}" not in gone]


def test_old_commits_are_thinned_to_one_a_week_and_the_ends_stay() -> None:
    days = kept(superfluous(nights(), (), now=NOW, keep_days=100))
    old = [day for day in days if day < DAYS - 101]
    assert old[0] == 0
    assert old[1:] == list(range(6, DAYS - 101, 7))
    assert days[-101:] == list(range(DAYS - 101, DAYS))


def test_commits_near_a_known_change_stay() -> None:
    step = change(sha_before=f"{120:040x}", sha_after=f"{121:040x}")
    days = kept(superfluous(nights(), [step], now=NOW, keep_days=100, near=10))
    assert [day for day in days if 105 < day < 140] == [*range(110, 132), 132, 139]


def test_both_ends_of_a_ramp_stay_and_its_middle_is_thinned() -> None:
    ramp = change(sha_before=f"{50:040x}", sha_after=f"{150:040x}")
    days = kept(superfluous(nights(), [ramp], now=NOW, keep_days=100, near=2))
    assert {48, 49, 50, 51, 52, 148, 149, 150, 151, 152} <= set(days)
    assert len([day for day in days if 55 < day < 145]) == 12


def test_thinning_twice_removes_nothing_more() -> None:
    gone = superfluous(nights(), [change(120)], now=NOW, keep_days=100)
    left = [night for night in nights() if night.id not in gone]
    assert gone
    assert superfluous(left, [change(120)], now=NOW, keep_days=100) == ()


def test_the_runs_of_one_commit_stay_or_go_together() -> None:
    shards = [replace(night, id=f"{night.id}/{part}") for night in nights() for part in "ab"]
    gone = superfluous(shards, (), now=NOW, keep_days=100)
    assert {run.partition("/")[0] for run in gone if run.endswith("a")} == {
        run.partition("/")[0] for run in gone if run.endswith("b")
    }
    assert gone


def test_pull_requests_runs_do_not_stand_for_the_branchs() -> None:
    pulls = [
        replace(night, id=f"pull-{day}", sha=f"{day + 5000:040x}", branch="(none)")
        for day, night in enumerate(nights())
        if day % 3 == 0
    ]
    step = change(sha_before=f"{120:040x}", sha_after=f"{121:040x}")
    alone = superfluous(nights(), [step], now=NOW, keep_days=100)
    gone = superfluous([*nights(), *pulls], [step], now=NOW, keep_days=100)
    assert {run for run in gone if run.startswith("run")} == set(alone)
    left = [night for night in pulls if night.id not in gone]
    assert len([night for night in left if night.measured_at < "2025-09"]) == 35  # a week one


def test_a_branch_that_ended_long_ago_is_thinned_too() -> None:
    ended = [
        replace(night, branch="2.x", sha=f"{n + 900:040x}") for n, night in enumerate(nights())
    ]
    gone = superfluous([*ended[:60], *nights()[200:]], (), now=NOW, keep_days=180)
    assert len([day for day in range(60) if f"run-{day}" not in gone]) == 10


def test_a_commit_of_two_branches_stays_whole_where_one_of_them_needs_it() -> None:
    merged = nights()[121]
    pull = replace(merged, id="pull", branch="feature")
    step = change(sha_before=f"{120:040x}", sha_after=f"{121:040x}")
    gone = superfluous([*nights(), pull], [step], now=NOW, keep_days=100)
    assert not {"pull", merged.id} & set(gone)


def test_a_change_between_runs_without_a_commit_is_kept_as_any() -> None:
    bare = [replace(night, sha="") for night in nights()]
    step = change(sha_before="run-120", sha_after="run-121")
    days = kept(superfluous(bare, [step], now=NOW, keep_days=100, near=10))
    assert [day for day in days if 105 < day < 140] == [*range(110, 132), 132, 139]


def test_a_change_between_nights_of_one_commit_or_of_a_shortened_one_is_kept() -> None:
    rested = [
        replace(night, sha=f"{118 if 118 <= day <= 122 else day:040x}")
        for day, night in enumerate(nights())
    ]
    between = change(sha_before="run-120", sha_after="run-121")
    assert {112, *range(118, 123), 128} <= set(kept(_gone(rested, between)))
    shortened = [replace(night, sha=f"{day:07x}") for day, night in enumerate(nights())]
    step = change(sha_before=f"{120:07x}{9:033x}", sha_after=f"{121:07x}{9:033x}")
    assert set(range(110, 132)) <= set(kept(_gone(shortened, step)))


def _gone(given: list[RunHeader], step: KnownChange) -> tuple[str, ...]:
    return superfluous(given, [step], now=NOW, keep_days=100, near=10)


def test_a_clock_that_jumped_ahead_makes_nothing_old() -> None:
    jumped = NOW + timedelta(days=4000)
    assert superfluous(nights(90), (), now=jumped, keep_days=100) == ()
    ahead = [*nights(90)[:-1], replace(nights(90)[-1], measured_at=jumped.isoformat())]
    assert superfluous(ahead, (), now=BEGIN + timedelta(days=90), keep_days=100) == ()


def test_runs_without_a_readable_time_or_commit_stay() -> None:
    odd = replace(nights()[3], measured_at="last week", sha="")
    unsaid = replace(nights()[4], sha="")
    mixed = [odd if n.id == odd.id else unsaid if n.id == unsaid.id else n for n in nights()]
    gone = superfluous(mixed, (), now=NOW, keep_days=100)
    assert odd.id not in gone
    assert unsaid.id in gone  # one run, one commit of its own
    assert superfluous([], (), now=NOW, keep_days=100) == ()
