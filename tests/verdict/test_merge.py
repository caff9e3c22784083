"""Shards' reports made one: corrected for as one family, decided anew, and never quietly short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfci.errors import UsageError
from perfci.model.report import Comparison, Report
from perfci.model.run import Environment, Side
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from perfci.verdict.decision import failure_rows
from perfci.verdict.merge import merge
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from tests.verdict.shards import POLICY, paired, shard, stored
from tests.verdict.workers import failure, held_to

OTHER = Environment("linux-x86_64-cpu-5e6f7a8b", {"cpu": "Intel Xeon"})


def merge_all(
    *reports: Report, policy: Policy = POLICY, expect: int | None = None
) -> tuple[Report, ...]:
    named = [(f"part-{number}.json", report) for number, report in enumerate(reports, start=1)]
    return merge(named, policy, expect=expect)


def merged(*reports: Report, **options: Any) -> Report:
    (one,) = merge_all(*reports, **options)
    return one


def row_of(report: Report, case: str) -> Comparison:
    (row,) = [row for row in report.results if row.case == case]
    return row


def steady(*names: str) -> tuple[Comparison, ...]:
    return tuple(paired(name) for name in names)


def test_what_is_significant_among_few_is_judged_among_all() -> None:
    first = shard(1, 2, paired("slow", 1.08, p=0.004))
    second = shard(2, 2, *steady("a", "b", "c", "d"))
    assert row_of(first, "slow").status == "regressed"
    whole = merged(first, second)
    slow = row_of(whole, "slow")
    assert (slow.status, slow.p_adjusted) == ("inconclusive", pytest.approx(0.02))
    assert whole.verdict.status == "inconclusive"
    assert "slow" in whole.verdict.reasons[0]


def test_a_clear_regression_of_one_shard_fails_the_whole() -> None:
    whole = merged(shard(1, 2, paired("slow", 1.08)), shard(2, 2, *steady("a", "b")))
    assert whole.verdict.status == "fail"
    assert whole.verdict.reasons == ("slow: latency_p50 +8.0 % (threshold 5 %)",)


def test_the_configurations_alpha_decides_and_not_the_shards() -> None:
    parts = shard(1, 2, paired("slow", 1.08, p=0.004)), shard(2, 2, *steady("a", "b", "c", "d"))
    assert merged(*parts, policy=replace(POLICY, alpha=0.05)).verdict.status == "fail"


def test_the_configuration_says_what_an_undecided_row_does() -> None:
    lenient = replace(POLICY, metrics=held_to("latency_p50", 0.05, "fail"))
    parts = shard(1, 2, paired("unclear", 1.08, p=0.5)), shard(2, 2, *steady("a"))
    assert merged(*parts).verdict.status == "inconclusive"
    assert merged(*parts, policy=lenient).verdict.status == "pass"


def test_what_a_shard_said_of_its_own_family_is_said_anew() -> None:
    first = shard(1, 2, paired("unclear", 1.08, p=0.5))
    second = shard(2, 2, *(paired(f"case-{number}") for number in range(12)))
    before, after = (row_of(one, "unclear") for one in (first, merged(first, second)))
    assert after.detectable > before.detectable
    assert len(before.warnings) == len(after.warnings) == 1
    assert before.warnings[0].startswith("a change of ")
    assert after.warnings[0].startswith("a change of ")
    assert before.warnings != after.warnings


def test_a_change_believed_in_another_family_loses_its_doubt() -> None:
    many = adjust([paired("slow", 1.08), *steady(*map(str, range(12)))], POLICY)
    assert many[0].warnings[0].startswith("looks regressed: 6 rounds cannot rule out")
    assert adjust(many, POLICY) == many
    (alone,) = adjust(many[:1], POLICY)
    assert (alone.status, alone.warnings) == ("regressed", ())


def test_one_shard_of_one_and_a_whole_report_stay_as_they_are() -> None:
    rows = (paired("slow", 1.08), paired("unclear", 1.04, p=0.5), *steady("a"))
    for report in (shard(1, 1, *rows), shard(1, 1, *rows, shard="", split="")):
        whole = merged(report)
        assert whole.results == report.results
        assert (whole.shard, whole.split) == ("", "")


def test_a_missing_shard_is_never_a_pass() -> None:
    (one,) = merge_all(*(shard(number, 4, paired(f"case-{number}")) for number in (1, 3, 4)))
    assert one.verdict.status == "inconclusive"
    assert one.verdict.reasons == ("incomplete: shard 2 of 4 is missing",)
    assert one.missing == ("2/4",)
    assert read_report(render_json(one)) == one
    (again,) = merge_all(one)
    assert again.missing == one.missing
    assert again.verdict == one.verdict


def test_all_missing_shards_are_named() -> None:
    whole = merged(shard(2, 4, paired("a")))
    assert whole.verdict.reasons == ("incomplete: shards 1, 3, 4 of 4 are missing",)


def test_an_incomplete_report_still_fails_for_what_it_has() -> None:
    whole = merged(shard(1, 2, paired("slow", 1.08), paired("slower", 1.2)))
    assert whole.verdict.status == "fail"
    assert [reason.split(":")[0] for reason in whole.verdict.reasons] == [
        "slower",
        "incomplete",
        "slow",
    ]
    broken = failure("broken", "head")
    rows = (paired("a"), *failure_rows([broken], (), POLICY))
    whole = merged(shard(2, 2, *rows, failures=(broken,)))
    assert whole.verdict.status == "error"
    assert whole.verdict.reasons[1] == "incomplete: shard 1 of 2 is missing"


def test_a_shard_without_cases_holds_nothing_up() -> None:
    whole = merged(shard(1, 2, *steady("a", "b")), shard(2, 2))
    assert whole.verdict.status == "pass"
    assert len(whole.results) == 2


ALIKE = (paired("a"),), (paired("b"),)
REFUSED = {
    "twice": ({"shard": "1/2"}, "are both shard 1/2"),
    "other head": ({"head": Side("feature", "c" * 40, "python")}, "head's commit"),
    "other base": ({"base": Side("main", "c" * 40, "python")}, "base's commit"),
    "no base": ({"base": None}, "base's commit"),
    "other command": ({"command": "check"}, "the command"),
    "other version": ({"perfci_version": "9.9.9"}, "perfci's version"),
    "other benchmarks": (
        {"benchmarks_of": "0" * 40},
        "the commit of the benchmark files",
    ),
    "made worse": ({"injected": {"latency": 0.02}}, "what is injected"),
    "two Pythons": ({"base_environment": OTHER}, "base's environment"),
    "other count": ({"shard": "2/3"}, "the number of shards is '2' and '3'"),
    "other split": ({"split": "ffffffffffff"}, "the split"),
    "whole": ({"shard": ""}, "is a whole report"),
    "case twice": ({"results": adjust(ALIKE[0], POLICY)}, "in shard 1/2 and in shard 2/2"),
}  # fmt: skip


@pytest.mark.parametrize("how", REFUSED)
def test_what_is_no_part_of_the_same_report_is_refused(how: str) -> None:
    changes, said = REFUSED[how]
    with pytest.raises(UsageError, match=said) as caught:
        merged(shard(1, 2, *ALIKE[0]), shard(2, 2, *ALIKE[1], **changes))
    assert caught.value.advice
    if how != "case twice":
        assert "part-2.json" in caught.value.message


def test_what_a_stranger_wrote_reaches_no_terminal_as_it_is() -> None:
    strange = Side("feature", "\x1b[2J\u202e", "python")
    with pytest.raises(UsageError) as caught:
        merged(shard(1, 2, *ALIKE[0]), shard(2, 2, *ALIKE[1], head=strange))
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("one", [shard(1, 1, *ALIKE[0]), shard(1, 1, *ALIKE[0], shard="")])
def test_fewer_shards_than_expected_are_no_complete_report(one: Report) -> None:
    with pytest.raises(UsageError, match="--expect asks for 4"):
        merged(one, expect=4)
    assert merged(one, expect=1).verdict.status == "pass"


def test_baselines_of_different_commits_are_one_check() -> None:
    first = shard(1, 2, *ALIKE[0], command="check")
    second = shard(2, 2, *ALIKE[1], command="check", base=Side("baseline", "c" * 40, "python"))
    assert merged(first, second).base == first.base


def test_each_environment_has_its_own_report() -> None:
    parts = [
        shard(number, 2, paired(f"case-{number}", ratio), environment=environment)
        for number in (1, 2)
        for environment, ratio in ((shard(1, 1).environment, 1.0), (OTHER, 1.2))
    ]
    first, second = merge_all(*reversed(parts))
    assert (first.environment.key, first.verdict.status) == (
        "linux-x86_64-cpu-1a2b3c4d",
        "pass",
    )
    assert (second.environment.key, second.verdict.status) == (OTHER.key, "fail")
    assert first.missing == second.missing == ()


def test_a_shard_that_another_machine_measured_is_missing() -> None:
    parts = shard(1, 2, *ALIKE[0]), shard(2, 2, *ALIKE[1], environment=OTHER)
    first, second = merge_all(*parts)
    assert first.verdict.reasons == ("incomplete: shard 2 of 2 is missing",)
    assert second.missing == ("1/2",)


def test_a_failure_that_two_shards_tell_is_there_once() -> None:
    file = replace(failure("benchmarks/bench_x.py", "head"), log_tail="at 0x7f01")
    again = replace(file, log_tail="at 0x7f02", message="boom in /tmp/other")
    rows = failure_rows([file], (), POLICY)
    first = shard(1, 2, paired("a"), *rows, failures=(file,))
    whole = merged(first, shard(2, 2, paired("b"), failures=(again,)))
    assert whole.failures == (file,)
    assert whole.verdict.status == "error"


def test_an_interrupted_shard_makes_the_whole_interrupted() -> None:
    whole = merged(shard(1, 2, *ALIKE[0]), shard(2, 2, *ALIKE[1], interrupted=True))
    assert whole.interrupted
    assert whole.verdict.reasons == ("interrupted before everything was measured",)


def checked(*rows: Comparison) -> Report:
    return merged(shard(1, 1, command="check", results=rows))


def test_a_suspicion_that_was_not_confirmed_is_said_to_be_one() -> None:
    report = checked(stored("suspect", 1.08, p=1e-6, confirmed=False))
    assert report.verdict.status == "fail"
    assert "unconfirmed: base and head were not measured in pairs" in report.verdict.reasons
