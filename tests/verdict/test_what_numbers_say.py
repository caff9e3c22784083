"""What a row's numbers say: centres of a typical round, overstated changes, tails that warn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from perfci.model.report import Comparison
from perfci.model.words import reason_words
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide, with_verdict
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from tests.verdict.shards import shard
from tests.verdict.workers import case, side, worker

POLICY = Policy()
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


@pytest.mark.parametrize("which", ["base", "head", "both"])
@pytest.mark.parametrize(
    ("warm", "calls", "is_said"),
    [
        (2e-7, (2e-3, 2e-7), True),  # an iterator that is used up
        (5e-5, (0.9, 5e-5), True),  # a result that is kept
        (2e-7, (3e-4, 2e-7), True),  # three items
        (2e-7, (2e-7, 2e-7, 0.004, 2e-7), True),  # no matter in which call
        (2e-7, (1e-4, 2e-7), False),  # anything may take so long in a first call
        (1e-3, (2.0, 1e-3), False),  # initialises
        (2e-7, (), False),
    ],
)
@pytest.mark.parametrize("more", [{}, {"graphs": 1.0}, {"device_time_p50": 1e-7}])
def test_work_that_is_done_once_per_process_keeps_a_report_from_a_pass(
    which: str, warm: float, calls: tuple[float, ...], is_said: bool, more: dict[str, float]
) -> None:
    sides = []
    for name in ("base", "head"):
        once = which in {name, "both"}
        seconds, firsts = (warm, calls) if once else (1e-3, (1e-3,))
        values = {"latency_p50": seconds, **(more if once else {})}
        sides.append([worker(name, n, values, first_calls=firsts) for n in range(1, 7)])
    rows = adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY)
    said = [reason for reason in decide(rows, (), POLICY).findings if reason.code == "done-once"]
    assert bool(said) == (is_said and not more)
    assert decide(rows, (), POLICY).status != "pass" or not said
    assert all("done once per process" in reason_words(reason) for reason in said)


@pytest.mark.parametrize(
    ("base", "head", "cold_start", "status"),
    [
        (None, 0.25, 0.2, "regressed"),
        (0.25, None, 0.2, "improved"),
        (0.25, 0.25, 0.2, "unchanged"),
        (None, 0.015, 0.2, "unchanged"),
        (None, 0.25, 6.0, "unchanged"),  # less than 5 % of the cold start
        (None, 0.6, 6.0, "regressed"),
    ],
)
def test_work_of_early_calls_gates_as_the_cold_start_does(
    base: float | None, head: float | None, cold_start: float, status: str
) -> None:
    sides = [
        [
            worker(
                name,
                number,
                {"cold_start": cold_start * luck}
                | ({"early_calls": early * luck} if early else {}),
            )
            for number, luck in enumerate((1.0, 1.001, 0.999, 1.002, 0.998, 1.0), start=1)
        ]
        for name, early in (("base", base), ("head", head))
    ]
    rows = adjust(compare_case(case(), *sides, POLICY, paired=True), POLICY)
    (row,) = (row for row in rows if row.metric == "early_calls")
    assert (row.status, row.gate) == (status, "fail")


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
