"""A pass, a status or a shard that the rest of its report denies isn't believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfci.errors import DamagedFile
from perfci.model.case import Failure
from perfci.model.finding import IN_WORDS, finding
from perfci.model.report import Comparison, Definition, Estimate, Report, Verdict
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from perfci.verdict.acceptance import enforced
from perfci.verdict.decision import decide, failure_rows, placeholder, require_gate
from perfci.verdict.policy import MetricPolicy, Policy
from perfci.verdict.row_status import adjust
from tests.report.examples import (
    alone_report,
    bare,
    hostile_report,
    passing_report,
    rich_report,
)
from tests.verdict.shards import POLICY, paired, shard, stored
from tests.verdict.workers import failure

PASS = Verdict("pass", ())
BROKEN = Failure("broken", "head", "setup", "Boom", "lib is gone", "")


def refused(report: Report, said: str) -> None:
    with pytest.raises(DamagedFile, match=said):
        read_report(render_json(report))


def passing(**changed: Any) -> Report:
    return replace(passing_report(), **changed)


@pytest.mark.parametrize("side", ["head", "base and head"])
def test_a_pass_whose_head_failed_is_refused(side: str) -> None:
    refused(passing(failures=(replace(BROKEN, side=side),)), "broken failed on")


ON_BASE = replace(BROKEN, case="a", side="base")
SLOW, OTHER = paired("a", 2.0), paired("b")
FAILED = bare("a", "failed", "")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"results": (FAILED, OTHER)}, "no failure is of it"),
        ({"results": (FAILED, OTHER), "failures": (ON_BASE,)}, "failed on base"),
        ({"results": (OTHER,), "not_measured": {"latency_p50": "x"}}, "not_measured names"),
        ({"results": (OTHER, replace(bare("b", "new", ""), metric="cold_start"))}, "is `new`"),
        ({"results": (OTHER,), "command": "check"}, "paired without being confirmed"),
        ({"results": (replace(stored("b"), confirmed=True),)}, "measured unpaired"),
    ],
    ids=str,
)
def test_rows_that_the_rest_of_the_report_denies_are_refused(
    changed: dict[str, Any], said: str
) -> None:
    rows = adjust(changed["results"], POLICY)
    refused(passing(**(changed | {"results": rows})), said)


def test_a_failure_on_base_alone_may_pass_only_where_base_does_not_have_the_case() -> None:
    on_base = replace(BROKEN, side="base")
    refused(passing(failures=(on_base,)), "failed on base")
    new = bare(on_base.case, "new", "base failed")
    report = passing(results=(*passing().results, new), failures=(on_base,))
    assert read_report(render_json(report)) == report


@pytest.mark.parametrize(
    "rows",
    [
        (),
        (bare("a", "new", ""), bare("b", "removed", "")),
        (bare("a", "inconclusive", "the time budget ended"), bare("b", "new", "")),
        (replace(bare("a", "inconclusive", ""), head=Estimate(None, None, None, 0, 0)),),
    ],
)
def test_a_pass_that_measured_nothing_is_refused(rows: tuple[Comparison, ...]) -> None:
    refused(passing(results=rows), "nothing was measured")


def test_a_shard_that_got_no_case_may_pass() -> None:
    report = passing(results=(), shard="2/4")
    assert read_report(render_json(report)) == report
    refused(passing(results=(bare("a", "removed", ""),), shard="1/4"), "nothing was measured")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"missing": ("2/4",)}, "shards are missing"),
        ({"missing": ("4/2",)}, "missing is '4/2'"),
        ({"missing": ("x",)}, "missing is 'x'"),
        ({"shard": "5/4"}, "shard is '5/4'"),
        ({"missing": ("2/4",), "shard": "1/4"}, "a merged report says that"),
        ({"durations": {"a": 1e10}}, "durations.a is 1e"),
    ],
    ids=str,
)
def test_shards_and_times_that_cannot_be_are_refused(changed: dict[str, Any], said: str) -> None:
    refused(passing(**changed), said)


@pytest.mark.parametrize(
    ("name", "value"), [("wall_s", 1e308), ("measured_s", 1e308), ("rounds", (1 << 63) - 1)]
)
def test_a_time_that_no_session_takes_is_refused(name: str, value: float) -> None:
    plain = json.loads(render_json(passing_report()))
    plain["timing"][name] = value
    with pytest.raises(DamagedFile, match=f"timing.{name} is "):
        read_report(json.dumps(plain))


@pytest.mark.parametrize("df", [0.0, 5e-324, 0.5, -1.0])
def test_degrees_of_freedom_that_no_test_has_are_refused(df: float) -> None:
    rows = tuple(replace(one, df=df) for one in passing_report().results)
    refused(passing(results=rows), "df is ")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"durations": {"slow": 3.0}}, "durations names 'slow'"),
        ({"definitions": (Definition("slow", "bench.py", 3),)}, r"definitions\[0\] is of 'slow'"),
    ],
    ids=str,
)
def test_a_report_that_lacks_a_case_that_it_measured_is_refused(
    changed: dict[str, Any], said: str
) -> None:
    refused(passing(**changed), said)
    for told in (
        {"results": (*passing().results, bare("slow[n=1]", "new", ""), bare("slow", "new", ""))},
        {"base": None, "command": "run", "verdict": Verdict("error", ())},  # it may report no row
    ):
        report = passing(**changed | told)
        assert read_report(render_json(report)) == report


def test_the_examples_are_all_believed() -> None:
    empty = passing(results=(), shard="2/4", skipped={"a": "needs 16 GiB"})
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
    replace(POLICY, metrics={"latency_p50": MetricPolicy(0.05, "fail", "pass")}),
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
def test_whatever_perfci_decides_is_believed(
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
    report = shard(1, 2, verdict=verdict, failures=tuple(failures), interrupted=interrupted)
    reported = {row.case: (row.metric,) for row in rows}
    report = replace(report, results=rows, shard=part, not_measured={})
    assert enforced(read_report(render_json(report)), policy, reported).verdict == verdict
