"""The policy here is enforced on a pass that another configuration gave; nothing becomes laxer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.finding import IN_WORDS, Reason, finding, stated
from perfci.metrics import METRICS
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison, Report, Verdict, VerdictStatus
from perfci.model.words import reason_words
from perfci.report.view import ReportView
from perfci.verdict.acceptance import enforced, with_caveat, with_unreported
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide, placeholder
from perfci.verdict.row_status import adjust, untouched_rows
from tests.verdict.shards import POLICY, paired, shard
from tests.verdict.workers import case, failure, held_to, side, worker

LENIENT = replace(POLICY, metrics=held_to("latency_p50", 0.05, "fail"))
UNDECIDED = replace(paired("a", 1.03, noise=30.0), status="inconclusive")
ELSE = reason_words(Reason("elsewhere", arguments={"status": "pass"}))


def passing(*rows: Comparison, **changes: object) -> Report:
    unknown = ("peak_host_memory", "host_memory_over_setup")
    machine = {"not_measured": dict.fromkeys(unknown, "no memory in /proc")}
    one = replace(shard(1, 1), results=rows, shard="", verdict=Verdict("pass", ()))
    return replace(one, **machine | changes)


def test_a_pass_over_what_is_undecided_here_is_inconclusive() -> None:
    report = enforced(passing(UNDECIDED), POLICY)
    assert report.verdict.status == "inconclusive"
    assert report.verdict.reasons[0].startswith("a: latency_p50 +")
    assert report.verdict.reasons[-1] == ELSE
    assert [row.status for row in report.results] == ["inconclusive"]


def test_a_pass_that_the_policy_here_gives_too_stays_as_it_is() -> None:
    for row in (UNDECIDED, paired("a", 1.0)):
        report = passing(row)
        assert enforced(report, LENIENT) is report


def test_an_untouched_row_that_moved_by_more_than_the_threshold_here_is_no_pass() -> None:
    for ratio, status in ((1.04, "pass"), (1.9, "inconclusive"), (1 / 1.9, "inconclusive")):
        (row,) = untouched_rows([replace(paired("a", ratio), threshold=9.0)])
        assert row.status == "untouched"
        assert enforced(passing(row), POLICY).verdict.status == status


DOUBLED = paired("a", 2.0)


@pytest.mark.parametrize("status", ["pass", "inconclusive"])
@pytest.mark.parametrize(
    "row",
    [
        replace(DOUBLED, status="unchanged", threshold=9.0),
        replace(DOUBLED, status="regressed", gate="info"),
        replace(DOUBLED, status="inconclusive"),  # for an alpha of 1e-9, or a cohens_d of 1e9
        replace(DOUBLED, status="inconclusive", metric="cold_start", threshold=0.1),
    ],
)
def test_what_only_a_laxer_configuration_lets_pass_fails(
    row: Comparison, status: VerdictStatus
) -> None:
    report = replace(passing(row), verdict=Verdict(status, ()))
    share = "5 %" if row.metric == "latency_p50" else "10 %"
    now = enforced(report, POLICY)
    assert now.verdict.status == "fail"
    assert now.verdict.reasons[0] == f"a: {row.metric} +100.0 % (threshold {share})"
    assert now.verdict.findings[-1] == Reason("elsewhere", arguments={"status": status})


@pytest.mark.parametrize("row", [replace(UNDECIDED, gate="info"), replace(UNDECIDED, gate="warn")])
def test_an_undecided_row_that_gates_here_alone_is_no_pass(row: Comparison) -> None:
    assert decide((row,), (), POLICY).status == "pass"
    assert enforced(passing(row), POLICY).verdict.status == "inconclusive"


def test_what_is_unchanged_by_a_wider_threshold_alone_is_undecided() -> None:
    row = replace(paired("a", 1.03, noise=30.0), status="unchanged", threshold=9.0)
    now = enforced(passing(row), POLICY)
    assert (now.verdict.status, now.results[0].status) == ("inconclusive", "inconclusive")
    assert now.results[0].threshold == 0.05


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        ("graph_breaks", ((0.0,) * 6, (2.0,) * 6), "fail"),
        ("peak_device_memory", ((100.0,) * 6, (150.0,) * 6), "fail"),
        ("peak_device_memory", ((100.0, 170.0) * 3, (150.0,) * 6), "pass"),
        ("peak_device_memory", ((100.0,) * 6, (101.0,) * 6), "pass"),
    ],
)
def test_an_exact_metric_is_judged_by_the_threshold_here(
    metric: str, values: tuple[tuple[float, ...], ...], expected: VerdictStatus
) -> None:
    sides = side("base", metric, values[0]), side("head", metric, values[1])
    wide = replace(POLICY, metrics=held_to(metric, 1e9, "fail"))
    rows = compare_case(case("a"), *sides, wide, paired=True)
    assert enforced(passing(paired("b"), *rows), wide).verdict.status == "pass"
    assert enforced(passing(paired("b"), *rows), LENIENT).verdict.status == expected


def test_the_floor_of_the_whole_peak_holds_here_too() -> None:
    """Seen: what passes by 2 % of the peak failed in stage 2, which knew of 4 MiB alone."""

    def workers(name: str, more: float) -> list[WorkerOutput]:
        values = {"peak_host_memory": 260.0 + more, "host_memory_over_setup": 3.0 + more}
        lucky = (1.0, 1.001, 0.999, 1.0, 1.001)
        return [
            worker(name, number, {metric: each * luck * 2**20 for metric, each in values.items()})
            for number, luck in enumerate(lucky, start=1)
        ]

    sides = workers("base", 0.0), workers("head", 4.68)
    wide = replace(POLICY, metrics=held_to("host_memory_over_setup", 1e9, "fail"))
    rows = adjust(compare_case(case("a"), *sides, wide, paired=True), wide)
    assert [row.status for row in rows] == ["unchanged", "unchanged"]
    now = enforced(passing(*rows, not_measured={}), replace(POLICY, thresholds={}))
    working = next(row for row in now.results if row.metric == "host_memory_over_setup")
    assert working.threshold == pytest.approx(0.02 * 260 * 2**20, rel=1e-3)
    assert working.status != "regressed"
    small = replace(POLICY, thresholds={"a": {"host_memory_over_setup": float(4 << 20)}})
    assert enforced(passing(*rows), small).verdict.status == "fail"


def test_a_wider_threshold_that_is_configured_here_or_lets_nothing_more_pass_is_as_good() -> None:
    wide_here = replace(POLICY, thresholds={"a": {"latency_p50": 9.0}})
    wide = replace(DOUBLED, status="unchanged", threshold=9.0)
    unknown = replace(wide, metric="loss", gate="fail")
    quiet = replace(paired("a", 1.0), threshold=9.0, gate="warn")
    known = paired("a")
    for rows, policy in (((wide,), wide_here), ((known, unknown), POLICY), ((quiet,), POLICY)):
        report = passing(*rows)
        assert enforced(report, policy) is report


def test_a_gating_metric_that_every_case_has_and_the_report_lacks_is_removed() -> None:
    report = passing(replace(paired("a"), metric="cold_start"), not_measured={})
    now = enforced(report, POLICY)
    assert now.verdict.status == "pass"
    assert [row.metric for row in now.results if row.status == "removed"] == [
        "latency_p50",
        "peak_host_memory",
        "host_memory_over_setup",
    ]
    assert now.verdict.reasons[0].startswith(
        "warning: a: latency_p50 (every case has latency_p50, and"
    )
    assert ReportView(now).headline.endswith("3 removed metrics (a latency_p50 and 2 more)")
    here_too = {"a": ("cold_start",)}
    assert enforced(report, POLICY, here_too) is report


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            placeholder("b", "not_comparable", POLICY, finding(IN_WORDS, text="another GPU")),
            "inconclusive",
        ),
        (replace(paired("b"), metric="loss", head=None, status="inconclusive"), "error"),
    ],
)
def test_what_no_policy_lets_pass_is_no_pass(row: Comparison, expected: VerdictStatus) -> None:
    assert enforced(passing(paired("a"), row), LENIENT).verdict.status == expected


def test_a_pass_with_failures_on_both_sides_or_of_half_a_session_is_none() -> None:
    both = (failure("b", "base"), failure("b", "head"))
    assert enforced(passing(paired("a"), failures=both), POLICY).verdict.status == "error"
    assert enforced(passing(paired("a"), interrupted=True), POLICY).verdict.status == "inconclusive"


def test_metrics_of_the_benchmark_s_own_ease_no_correction_of_perfci_s() -> None:
    slow = replace(paired("a", 3.0, p=1e-4, metric="cold_start"), status="inconclusive")
    noise = [paired("b", p=0.5, metric="jitter", gate="fail") for _ in range(500)]
    own = [replace(one, metric=f"own {number}") for number, one in enumerate(noise)]
    assert adjust((slow, *own), LENIENT)[0].status == "inconclusive"
    assert enforced(passing(slow, *own), LENIENT).verdict.status == "fail"


def test_a_pass_without_a_metric_that_gates_is_none() -> None:
    report = passing(
        paired("a", metric="device_time_p50"), not_measured=dict.fromkeys(METRICS, "x")
    )
    assert enforced(report, POLICY).verdict.status == "inconclusive"
    assert enforced(replace(report, shard="1/2"), POLICY).verdict.status == "pass"


def test_a_shard_that_had_nothing_to_measure_passes() -> None:
    report = replace(passing(), shard="2/4")
    assert enforced(report, POLICY) is report
    assert enforced(passing(), POLICY).verdict.status == "error"


@pytest.mark.parametrize("status", ["fail", "error", "inconclusive"])
def test_what_is_no_pass_is_made_no_better(status: VerdictStatus) -> None:
    report = replace(passing(paired("a")), verdict=Verdict(status, (stated("why"),)))
    assert decide(report.results, (), POLICY).status == "pass"
    assert enforced(report, POLICY) is report


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("pass", ("inconclusive", ("doubt", "why"))),
        ("inconclusive", ("inconclusive", ("doubt", "why"))),
        ("fail", ("fail", ("why", "doubt"))),
        ("error", ("error", ("why", "doubt"))),
    ],
)
def test_a_doubt_keeps_a_report_from_passing_and_is_told(
    status: VerdictStatus, expected: tuple[VerdictStatus, tuple[str, ...]]
) -> None:
    report = replace(passing(paired("a")), verdict=Verdict(status, (stated("why"),)))
    assert with_caveat(report, "doubt").verdict == Verdict(
        expected[0], tuple(map(stated, expected[1]))
    )
    assert with_caveat(report, "") is report


def lacking(report: Report) -> list[str]:
    written = {"bench.py": ["a", "b"], "bench_gpu.py": ["c"]}
    rows = with_unreported(report, written, POLICY).results
    added = rows[len(report.results) :]
    assert all((row.status, row.findings) == ("removed", (finding("unreported"),)) for row in added)
    return [row.case for row in added]


def test_a_benchmark_that_is_known_here_and_the_report_says_nothing_of_is_removed() -> None:
    same = replace(paired("a[n=1]"), status="unchanged")
    report = with_unreported(passing(same), {"bench.py": ["a", "b"]}, POLICY)
    assert report.verdict.status == "pass"
    assert ReportView(report).headline == "no regression in 1 case; 1 removed case"
    assert lacking(passing()) == ["a", "b", "c"]


def test_what_is_told_of_otherwise_is_not_removed_again() -> None:
    rows = (
        paired("a[n=1]"),
        placeholder("b", "removed", POLICY, finding(IN_WORDS, text="head hasn't got it")),
    )
    assert lacking(passing(*rows)) == ["c"]
    assert lacking(passing(rows[0], skipped={"b[n=2]": "slow", "c": "no GPU"})) == []
    both = failure("bench.py, bench_gpu.py", "head")
    assert lacking(passing(failures=(both,))) == []
    assert lacking(passing(*rows, failures=(replace(both, side="base"),))) == ["c"]
    assert lacking(passing(rows[0], shard="1/2")) == lacking(passing(missing=("1/2",))) == []
