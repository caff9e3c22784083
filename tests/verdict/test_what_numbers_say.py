"""What a row's numbers say: centres of a typical round, overstated changes, tails that warn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from perfci.model.report import Comparison
from perfci.model.words import reason_words
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide, with_verdict
from perfci.verdict.policy import default_policy
from perfci.verdict.row_status import adjust
from tests.verdict.shards import shard
from tests.verdict.workers import case, side

POLICY = default_policy()
BASE = (1.20e-3, 1.22e-3, 1.26e-3, 1.24e-3, 1.21e-3, 1.23e-3)


def compared(base: Sequence[float], head: Sequence[float], scale: float = 1.0) -> Comparison:
    """Return latency's row; the report has ``scale`` times as many comparisons."""
    sides = side("base", "latency_p50", base), side("head", "latency_p50", head)
    (row,) = adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY, scale)
    return row


def test_a_regression_whose_interval_reaches_below_the_threshold_may_be_overstated() -> None:
    near = compared(BASE, [b * 1.06 * (1 + 0.012 * (-1) ** n) for n, b in enumerate(BASE)])
    assert near.status == "regressed"
    assert "overstated" in near.warnings[-1]
    assert "the interval begins at 3.8 %" in near.warnings[-1]
    far = compared(BASE, [b * 1.2 * (1 + 0.012 * (-1) ** n) for n, b in enumerate(BASE)])
    assert (far.status, far.warnings) == ("regressed", ())
    assert adjust([near], POLICY)[0].findings == near.findings


def tail(change: float, **more: object) -> Comparison:
    """Return an undecided row of P95, worse by about ``change``."""
    head = [b * (1.0 + change) * (1 + 0.02 * (-1) ** n) for n, b in enumerate(BASE)]
    row = compared(BASE, head, 100.0)
    row = replace(row, metric="latency_p95", gate="warn", threshold=0.10)
    return replace(row, **more)


def test_an_undecided_tail_that_lies_beyond_its_threshold_warns_and_still_passes() -> None:
    row = tail(1.42)
    assert row.status == "inconclusive"
    verdict = decide([row], (), POLICY)
    assert verdict.status == "pass"
    (reason,) = map(reason_words, verdict.findings)
    assert ": latency_p95 +142.0 % (threshold 10 %), though undecided (looks regressed" in reason
    assert reason.startswith("warning: ")


@pytest.mark.parametrize(
    "row",
    [tail(0.11), tail(-0.6), tail(1.42, gate="info"), tail(1.42, method="welch_t")],
    ids=["reaches below the threshold", "better", "informs", "of another day"],
)
def test_other_undecided_rows_do_not_warn(row: Comparison) -> None:
    assert decide([row], (), POLICY).findings == ()


def test_a_strict_report_names_the_rare_state_that_its_rounds_do_not_exclude() -> None:
    same = compared(BASE, [b * (1 + 0.001 * (-1) ** n) for n, b in enumerate(BASE)])
    strict = replace(POLICY, strict=True)
    assert with_verdict(shard(1, 1, same, shard=""), POLICY).verdict.findings == ()
    (reason,) = with_verdict(shard(1, 1, same, shard=""), strict).verdict.reasons
    assert "6 equal rounds don't exclude a state that slows less than 39.3 %" in reason
    improved = compared(BASE, [b * 0.8 * (1 + 0.001 * (-1) ** n) for n, b in enumerate(BASE)])
    assert with_verdict(shard(1, 1, improved, shard=""), strict).verdict.findings == ()
