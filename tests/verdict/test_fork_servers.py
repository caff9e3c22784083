"""Rounds of two fork servers: what is concluded where they agree, and where they differ."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from tests.verdict.workers import case, worker

METRIC = "latency_p50"
POLICY = Policy()
WOBBLE = (0.001, -0.002, 0.002, 0.0, -0.001, 0.0015, -0.0005, 0.001, 0.0, -0.001)


def judged(servers: Sequence[int], changes: Sequence[float]) -> Comparison:
    rounds = list(enumerate(zip(servers, changes, WOBBLE, strict=False), 1))
    base = [worker("base", n, {METRIC: 0.01}, server=of) for n, (of, _, _) in rounds]
    head = [
        worker("head", n, {METRIC: 0.01 * (1.0 + change + wobble)}, server=of)
        for n, (of, change, wobble) in rounds
    ]
    (row,) = adjust(compare_case(case(), base, head, POLICY, paired=True), POLICY)
    return row


def test_rounds_of_one_fork_server_are_decided() -> None:
    assert judged((1,) * 5, [0.0] * 5).status == "unchanged"
    assert judged((1,) * 8, [0.1] * 8).status == "regressed"


@pytest.mark.parametrize("changes", [(0.08, 0.16), (0.16, 0.08), (-0.08, -0.16)])
def test_a_change_that_the_second_fork_server_shows_otherwise_does_not_count(
    changes: tuple[float, float],
) -> None:
    first, second = changes
    row = judged((1,) * 5 + (2,) * 5, [first] * 5 + [second] * 5)
    assert row.caveat.code == "servers-differ"
    assert row.status == "inconclusive"
    assert any("second fork server differ" in warning for warning in row.warnings)


@pytest.mark.parametrize(
    "servers", [(1,) * 5 + (2,) * 5, (1,) * 8 + (2,) * 2, (0,) * 10, range(1, 11)]
)
def test_fork_servers_that_agree_or_that_gave_too_few_rounds_are_no_caveat(
    servers: Sequence[int],
) -> None:
    row = judged(servers, [0.1] * 10)
    assert (row.caveat, row.status) == (None, "regressed")


@pytest.mark.parametrize("status", ["regressed", "improved"])
def test_servers_that_hardly_differ_beside_the_change_are_no_caveat(status: str) -> None:
    first, second = (1.6, 1.64) if status == "regressed" else (-0.5, -0.51)
    row = judged((1,) * 5 + (2,) * 5, [first] * 5 + [second] * 5)
    assert (row.caveat, row.status) == (None, status)


@pytest.mark.parametrize(
    ("rounds", "without", "status"),
    [(20, 1, "regressed"), (20, 2, "regressed"), (10, 2, "inconclusive"), (20, 8, "inconclusive")],
)
def test_a_change_that_nearly_all_of_many_rounds_show_is_no_chance_of_two_speeds(
    rounds: int, without: int, status: str
) -> None:
    base = [worker("base", n, {"cold_start": 0.14 * 1.001**n}) for n in range(rounds)]
    head = [
        worker("head", n, {"cold_start": (0.13 if n < without else 0.37) * 1.002 ** (n % 3)})
        for n in range(rounds)
    ]
    (row,) = adjust(compare_case(case(), base, head, POLICY, paired=True), POLICY)
    assert row.status == status
