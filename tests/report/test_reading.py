"""Reports hold no impossible numbers, and neither their statuses nor their verdict count."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfci.errors import DamagedFile
from perfci.finding import IN_WORDS, finding
from perfci.forges.posting import conclusion
from perfci.model.case import Failure
from perfci.model.report import Comparison, Report, Verdict
from perfci.model.status import Status
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from perfci.verdict.acceptance import enforced
from perfci.verdict.decision import decide, failure_rows, placeholder, require_gate
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from tests.report.examples import (
    EAGER,
    alone_report,
    bare,
    hostile_report,
    passing_report,
    rich_report,
    row,
)
from tests.verdict.shards import POLICY, paired, shard, stored
from tests.verdict.workers import failure, held_to

PASS = Verdict("pass", ())
SLOW = adjust([paired("a", 1.5)], POLICY)[0]
MORE_BREAKS = row(EAGER, "graph_breaks", 0, 1, "regressed")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"p": 2.0}, "p is not a number"),
        ({"df": 0.0}, "df is not a number"),
        ({"df": 5e-324}, "df is not a number"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 0.0}, "confidence"),
        ({"threshold": -0.1}, "threshold"),
        ({"base_sessions": -1}, "base_sessions"),
        ({"se": -1.0}, "se is"),
        ({"base": replace(SLOW.base, workers=-1)}, "base is"),
        ({"status": "new"}, "base has numbers"),
        ({"method": "none"}, "was not compared"),
        ({"direction": "higher"}, "isn't the metric's"),
        ({"direction": "sideways", "metric": "loss"}, "isn't the metric's"),
        ({"unit": "bytes"}, "isn't the metric's"),
    ],
    ids=str,
)
def test_a_row_that_no_measurement_gives_is_refused(changed: dict[str, Any], said: str) -> None:
    report = replace(passing_report(), results=(replace(SLOW, **changed),))
    with pytest.raises(DamagedFile, match=said):
        read_report(render_json(report))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"missing": ("2/4",)}, "shards are missing"),
        ({"missing": ("4/2",)}, "missing is '4/2'"),
        ({"shard": "5/4"}, "shard is '5/4'"),
        ({"durations": {"a": 1e10}}, "a took 1e"),
        ({"durations": {"a": -1.0}}, "a took -1"),
        ({"results": (SLOW, SLOW)}, "twice"),
        ({"created_at": "yesterday"}, "no ISO 8601"),
    ],
    ids=str,
)
def test_a_report_that_nothing_writes_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(DamagedFile, match=said):
        read_report(render_json(replace(passing_report(), **changed)))


@pytest.mark.parametrize(
    ("name", "value"), [("wall_s", 1e308), ("measured_s", 1e308), ("rounds", (1 << 63) - 1)]
)
def test_a_time_that_no_session_takes_is_refused(name: str, value: float) -> None:
    plain = json.loads(render_json(passing_report()))
    plain["timing"][name] = value
    with pytest.raises(DamagedFile, match=f"{name} took "):
        read_report(json.dumps(plain))


@pytest.mark.parametrize("status", ["unchanged", "improved", "inconclusive"])
@pytest.mark.parametrize("slow", [SLOW, MORE_BREAKS], ids=["tested", "counted"])
def test_a_forged_status_and_verdict_are_decided_anew(slow: Comparison, status: Status) -> None:
    forged = replace(slow, status=status, gate="info", findings=())
    report = replace(passing_report(), results=(paired("x"), forged), verdict=PASS)
    held = enforced(read_report(render_json(report)), POLICY)
    assert held.verdict.status == "fail"
    assert conclusion([held], strict=False) == "failure"


def test_a_pass_that_failed_or_measured_nothing_is_none() -> None:
    broken = Failure("broken", "head", "setup", "Boom", "lib is gone", "")
    for changed in ({"failures": (broken,)}, {"results": ()}, {"results": (bare("a", "new", ""),)}):
        report = replace(passing_report(), not_measured={}, **changed)
        held = enforced(read_report(render_json(report)), POLICY)
        assert held.verdict.status in {"error", "inconclusive"}


def test_the_examples_are_all_read() -> None:
    empty = replace(passing_report(), results=(), shard="2/4", skipped={"a": "needs 16 GiB"})
    for report in (rich_report(), passing_report(), alone_report(), hostile_report("a"), empty):
        assert read_report(render_json(report)) == report


_ROWS: tuple[Callable[[str, float], tuple[Comparison, ...]], ...] = (
    lambda case, ratio: (paired(case, ratio),),
    lambda case, ratio: (paired(case, ratio, metric="cold_start"),),
    lambda case, ratio: (paired(case, ratio, metric="throughput"),),
    lambda case, ratio: (stored(case, ratio),),
    lambda case, _: failure_rows([failure(case, "head")], (), POLICY),
    lambda case, _: failure_rows([failure(case, "base")], (), POLICY),
    lambda case, _: (bare(case, "new", "no baseline yet"),),
    lambda case, _: (bare(case, "not_comparable", "the benchmark's source changed"),),
    lambda case, _: (
        placeholder(case, "inconclusive", POLICY, finding(IN_WORDS, text="the time budget ended")),
    ),
)
_POLICIES = (
    POLICY,
    replace(POLICY, metrics=held_to("latency_p50", 0.05, "fail")),
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(range(len(_ROWS))),
            st.sampled_from([0.5, 0.97, 1.0, 1.02, 1.049, 1.051, 1.2]),
        ),
        max_size=6,
    ),
    st.sampled_from(["", "1/2"]),
    st.booleans(),
    st.sampled_from(_POLICIES),
)
@settings(max_examples=150)
def test_what_perfci_decides_is_decided_the_same_way_again(
    kinds: list[tuple[int, float]], part: str, interrupted: bool, policy: Policy
) -> None:
    rows: tuple[Comparison, ...] = ()
    failures: list[Failure] = []
    for number, (kind, ratio) in enumerate(kinds):
        case = f"case-{number}"
        rows += _ROWS[kind](case, ratio)
        if kind in {4, 5}:
            failures.append(failure(case, "head" if kind == 4 else "base"))
    rows = adjust(rows, POLICY)
    empty = part and not rows and not interrupted
    verdict = PASS if empty else decide(rows, failures, policy, interrupted=interrupted)
    verdict = verdict if part else require_gate(verdict, rows)
    report: Report = shard(1, 2, verdict=verdict, failures=tuple(failures), interrupted=interrupted)
    reported = {row.case: (row.metric,) for row in rows}
    report = replace(report, results=rows, shard=part, not_measured={})
    assert enforced(read_report(render_json(report)), policy, reported).verdict == verdict
