"""What perfci writes is believed; a row whose status, figures or metric were edited is not."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perfci.errors import DamagedFile
from perfci.forges.base import conclusion
from perfci.metrics import METRICS, Ruling
from perfci.model.case import Metric
from perfci.model.finding import IN_WORDS, finding
from perfci.model.report import Comparison, Estimate, Report, Verdict
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from perfci.report.row_checks import row_contradictions
from perfci.verdict.acceptance import enforced
from perfci.verdict.case_comparisons import compare_case, left_out, without_numbers
from perfci.verdict.decision import decide
from perfci.verdict.policy import MetricPolicy, Policy
from perfci.verdict.row_status import adjust
from tests.report.examples import EAGER, passing_report, row
from tests.verdict.shards import POLICY, paired, shard, stored
from tests.verdict.workers import case, side

OWN = (
    Metric("loss", "nats", "per_worker", 0.05, "fail"),
    Metric("score", "points", "exact", 0.05, "fail", "higher"),
    Metric("drift", "mm", "per_worker", 1.0, "fail", absolute=True),
)
NAMES = (*METRICS, *(one.name for one in OWN))
VALUES = st.one_of(
    st.floats(0.5, 2.0),
    st.floats(0.99, 1.01),
    st.floats(-1e160, 1e160),
    st.sampled_from([0.0, 1.0, 1.0, 1.0, 2.0, 1e-9, 1e149, math.nan, math.inf, 5e-324]),
)


def workers(name: str, metric: str, values: Sequence[float]) -> Any:
    extra = tuple(one for one in OWN if one.name == metric)
    return tuple(replace(one, extra_metrics=extra) for one in side(name, metric, values))


@given(
    st.sampled_from(NAMES),
    st.lists(VALUES, min_size=1, max_size=9),
    st.lists(VALUES, min_size=1, max_size=9),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([0.0, 0.05, 1.0, 1e9]),
    st.sampled_from([1e-9, 0.01, 0.9]),
)
@example("score", [0.0], [0.0], None, 0.0, 0.01)
@example("host_memory_over_setup", [1.0] * 5, [1.0] * 5, None, 0.0, 0.01)
@example("latency_p50", [1.0, 1.0, 2.0], [0.0], 2, 0.0, 0.01)
@settings(max_examples=400, deadline=None)
def test_whatever_is_compared_is_believed(
    metric: str,
    before: list[float],
    after: list[float],
    sessions: int | None,
    threshold: float,
    alpha: float,
) -> None:
    rule = MetricPolicy(threshold, "fail", "inconclusive")
    policy = Policy(alpha=alpha, metrics=dict.fromkeys(METRICS, rule))
    sides = workers("base", metric, before), workers("head", metric, after)
    counts = _split(len(before), sessions) if sessions else ()
    rows = compare_case(
        case("a"), *sides, policy, paired=sessions is None, base_sessions=counts
    ) + left_out(case("a", metrics=("graphs",)), sides[0], None, policy)
    for one in adjust(rows, policy):
        assert list(row_contradictions(one)) == []


def _split(workers: int, sessions: int) -> tuple[int, ...]:
    """Return very unequal sessions."""
    ones = min(sessions, workers) - 1
    return (*([1] * ones), workers - ones)


def estimate(center: float) -> Estimate:
    return Estimate(center, center, center, 6, 600)


MADE = "its numbers make it"
NO_CENTRE = Estimate(None, None, None, 6, 600)
SLOW = adjust([paired("a", 1.5)], POLICY)[0]
SAME = adjust([paired("a", 1.0)], POLICY)[0]
STORED = adjust([stored("a", 1.0)], POLICY)[0]
BREAKS = row(EAGER, "graph_breaks", 0, 1, "regressed")
NO_BREAK = replace(BREAKS, difference=0.0, difference_lo=0.0, difference_hi=0.0)
COLD = replace(adjust([paired("a", 2.93, metric="cold_start")], POLICY)[0], status="inconclusive")
LOSS = row(EAGER, "accuracy_loss", 0.5, 3.0, "regressed", ratio=3.0, ratio_lo=3.0, ratio_hi=3.0)
NO_GRAPH = without_numbers(
    replace(BREAKS, difference=None, difference_lo=None, difference_hi=None),
    Ruling("regressed", finding("no-graph", side="head")),
    BREAKS.base,
    None,
)
NO_GRAPH_BEFORE = replace(NO_GRAPH, status="improved", base=None, head=BREAKS.head)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (replace(SLOW, status="improved"), MADE),
        (replace(SLOW, se=2.0 * SLOW.se), "its standard error isn't that of its interval"),
        (replace(BREAKS, se=0.1), "a standard error, and its method is `exact`"),
        (replace(SLOW, status="unchanged"), MADE),
        (replace(SLOW, status="new"), "base has numbers"),
        (replace(SLOW, status="removed"), "head has numbers"),
        (replace(SLOW, status="not_comparable"), "base has numbers"),
        (replace(SLOW, method="none"), "its method is `none`"),
        (replace(SLOW, method="exact"), "its method is `exact`"),
        (replace(SLOW, ratio_lo=None, ratio_hi=None), "no interval"),
        (replace(SLOW, ratio_lo=None), "one end"),
        (replace(SLOW, ratio_lo=0.1), "not of one test"),
        (replace(SLOW, p=1.0), "not of one test"),
        (replace(SLOW, p=None, p_adjusted=None), "no p"),
        (replace(SLOW, df=1e6), "not of one test"),
        (replace(SLOW, ratio=None, ratio_lo=None, ratio_hi=None), MADE),
        (replace(SLOW, direction="higher"), "direction"),
        (replace(SLOW, unit="bytes"), "unit"),
        (replace(SLOW, threshold=9.0), MADE),
        (replace(SAME, status="improved"), MADE),
        (replace(SAME, base=estimate(1.0), head=estimate(10.0)), "its sides are 1 and 10"),
        (replace(SAME, head=None), MADE),
        (replace(SAME, ratio=3.0, ratio_lo=None, ratio_hi=None), "its ratio is 3"),
        (replace(SAME, difference=0.0), "compared by its ratio"),
        (replace(STORED, base_sessions=1, status="unchanged"), MADE),
        (replace(BREAKS, status="unchanged"), MADE),
        (replace(BREAKS, status="improved"), MADE),
        (replace(BREAKS, status="inconclusive"), MADE),
        (replace(NO_BREAK, status="unchanged"), "isn't that of its sides"),
        (replace(BREAKS, p=0.1), "has a p"),
        (replace(SAME, base=replace(SLOW.base, center=None)), "no centre"),
        (replace(SAME, head=replace(SLOW.head, center=None)), "no centre"),
        (replace(NO_BREAK, status="unchanged", base=NO_CENTRE), "no centre"),
        (replace(SLOW, base_sessions=2), "its method is `paired_t`"),
        (replace(BREAKS, base_sessions=1), "its method is `exact`"),
        (replace(STORED, base_sessions=200_000), "fewer workers"),
        (replace(COLD, caveat=finding(IN_WORDS, text="x")), "not one that perfci gives"),
        (replace(COLD, caveat=finding("few-workers-changed")), "not one that perfci gives"),
        (replace(COLD, caveat=finding("few-rounds-changed")), "than its interval allows"),
        (replace(COLD, cohens_d=0.0), "cohens_d is 0"),
        (replace(COLD, cohens_d=-9.0), "cohens_d is -9"),
        (replace(LOSS, ratio=1.0, ratio_lo=1.0, ratio_hi=1.0, status="unchanged"), "ratio is 1"),
        (replace(NO_GRAPH, status="improved"), MADE),
        (replace(NO_GRAPH, status="inconclusive"), MADE),
        (replace(NO_GRAPH_BEFORE, status="regressed"), MADE),
        (replace(LOSS, head=None, ratio=None, status="inconclusive"), MADE),
        (
            replace(paired("a", 1.5), metric="loss", ratio=None, ratio_lo=None, ratio_hi=None),
            MADE,
        ),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(changed: Comparison, said: str) -> None:
    if changed.metric == "loss":
        changed = replace(changed, status="unchanged")
    reasons = list(row_contradictions(changed))
    assert any(said in reason for reason in reasons), reasons
    report = replace(passing_report(), results=(changed,), verdict=Verdict("inconclusive", ()))
    with pytest.raises(DamagedFile):
        read_report(render_json(report))


@pytest.mark.parametrize("one", [SLOW, SAME, STORED, BREAKS, COLD, LOSS, NO_GRAPH, NO_GRAPH_BEFORE])
def test_the_rows_that_are_edited_here_are_believed_unedited(one: Comparison) -> None:
    assert list(row_contradictions(one)) == []


def slow_report() -> Report:
    """Return a report whose every row is worse, or undecided."""
    rows = adjust(
        [
            paired("a", 1.5),
            replace(paired("b", 1.03, noise=30.0)),
            paired("c", 1.2, metric="peak_host_memory", unit="bytes"),
            row("d", "graph_breaks", 0, 2, "regressed"),
        ],
        POLICY,
    )
    report = shard(1, 1, verdict=decide(rows, (), POLICY))
    return replace(report, results=rows, shard="")


def test_no_single_edit_of_a_slow_report_makes_a_green_check() -> None:
    plain = json.loads(render_json(slow_report()))
    assert conclusion([read_report(json.dumps(plain))], strict=True) == "failure"
    chance = random.Random(7)
    for _ in range(1500):
        copy = json.loads(json.dumps(plain))
        _edit(copy, chance)
        try:
            report = enforced(read_report(json.dumps(copy)), POLICY)
        except DamagedFile:
            continue
        assert conclusion([report], strict=True) == "failure"


@pytest.mark.parametrize("number", range(4))
def test_no_single_edit_of_a_row_and_a_forged_pass_make_a_green_check(number: int) -> None:
    """The verdict says pass, and one field of the only slow row was changed to fit it."""
    slow = slow_report().results[number]
    others = (paired("x", 1.0),)
    plain = json.loads(render_json(replace(passing_report(), results=(*others, slow))))
    chance = random.Random(number)
    for _ in range(500):
        copy = json.loads(json.dumps(plain))
        one = copy["results"][1]
        name = chance.choice([name for name in one if name not in {"case", "metric", "warnings"}])
        one[name] = _other(one[name], chance)
        try:
            report = enforced(read_report(json.dumps(copy)), POLICY)
        except DamagedFile:
            continue
        assert conclusion([report], strict=True) == "failure", (name, one[name])


def _edit(plain: Any, chance: random.Random) -> None:
    """Change one value somewhere in ``plain``."""
    while True:
        keys = list(plain) if isinstance(plain, dict) else list(range(len(plain)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(plain[key], (dict, list)) and plain[key]:
            plain = plain[key]
            continue
        plain[key] = _other(plain[key], chance)
        return


def _other(value: Any, chance: random.Random) -> Any:
    words = ("pass", "unchanged", "improved", "inconclusive", "new", "info", "none", "exact", "")
    numbers = (0.0, 1.0, 0.5, 1e9, 1e-9, -1.0, 5)
    by_itself = [value * 2, value / 2] if isinstance(value, (int, float)) else []
    return chance.choice([*words, *numbers, *by_itself, None, True, False])
