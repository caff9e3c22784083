"""Which cases a shard has: each case in one, about as many in each, the same on every machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.model.case import Case
from perfci.verdict.shards import Shard, parse_shard, part_of, split
from tests.verdict.workers import case

SKIPPED = "needs a GPU"


def cases(*names: str, **changes: object) -> tuple[Case, ...]:
    return tuple(case(name, **changes) for name in names)


def ids(shares: tuple[tuple[Case, ...], ...]) -> list[list[str]]:
    return [[one.id for one in share] for share in shares]


@given(st.sets(st.text("abc[]=,1", min_size=1), max_size=40), st.integers(1, 12))
def test_every_case_is_in_one_shard_and_no_shard_has_two_more(names: set[str], count: int) -> None:
    shares = ids(split(cases(*names), count))
    assert len(shares) == count
    assert sorted(one for share in shares for one in share) == sorted(names)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_without_a_shard_everything_is_here() -> None:
    part = part_of(cases("a", "b"), None)
    assert (ids((part.cases, part.elsewhere)), part.split_digest) == ([["a", "b"], []], "")
    assert part.reports("a")
    assert part.reports("benchmarks/bench_broken.py")


def test_what_is_no_case_is_told_by_the_first_shard_alone() -> None:
    parts = [part_of(cases("a", "b", "c"), Shard(number, 2)) for number in (1, 2)]
    assert [part.reports("benchmarks/bench_broken.py") for part in parts] == [True, False]
    for name in "abc":
        assert sum(part.reports(name) for part in parts) == 1


def test_a_shard_knows_how_many_times_its_cases_the_report_has() -> None:
    some = (*cases("a", "b", "c"), *cases("d", skip=SKIPPED))
    scales = [part_of(some, Shard(number, 2)).scale for number in (1, 2)]
    assert sorted(scales) == [1.5, 3.0]


@pytest.mark.parametrize(
    "text", ["", "2", "0/4", "5/4", "2/0", "02/4", "2/4 ", "-1/4", "a/b", "1/2001", "٢/4", "1/4/8"]
)
def test_what_names_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"2/4|at most|the last of"):
        parse_shard(text)
