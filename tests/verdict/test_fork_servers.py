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
