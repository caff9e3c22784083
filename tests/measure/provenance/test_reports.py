"""A report that says what ran: its headline, its parts joined, and what can't be true of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.errors import DamagedFile
from perfci.model.case import Failure
from perfci.model.report import Report
from perfci.model.run import Compiled, Ran, SideRan
from perfci.model.worker import WRONG_CODE
from perfci.report.clean import code
from perfci.report.exporters.json import render as render_json
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.outline import headline, outline, same_code_text
from perfci.report.reading import read_report
from perfci.report.terminal import render_terminal
from perfci.verdict.decision import decide, failure_rows
from perfci.verdict.merge import joined_ran, joined_same_code
from perfci.verdict.policy import default_policy
from tests.report.examples import EAGER, passing_report, row

pytestmark = pytest.mark.processes

LIBRARY = Compiled("core/_C.so", "0" * 64)


def side(tree: str, **cases: str) -> SideRan:
    return SideRan(tree, ("src",), (LIBRARY,), ("weights.bin",), ("program git",), cases)


def same(report: Report, *cases: str) -> Report:
    hashes = dict.fromkeys(cases, "f" * 64)
    return replace(
        report, ran=Ran(side("a" * 40, **hashes), side("b" * 40, **hashes)), same_code=cases
    )


def test_a_pass_of_the_same_code_is_told_as_that_and_read_again() -> None:
    report = passing_report()
    cases = tuple(dict.fromkeys(one.case for one in report.results))
    alike = same(report, *cases)
    assert headline(outline(alike)).startswith("nothing that ran differs in ")
    assert "no regression" not in render_terminal(alike, 100, color=False)
    assert "no regression" not in render_markdown(alike)
    assert "base ran tree aaaaaaaaaa, imported from src" in render_terminal(
        alike, 300, color=False, verbose=True
    )
    assert "no regression in " in headline(outline(same(report, cases[0])))
    assert "nothing that ran differs in 1 case" in headline(outline(same(report, cases[0])))
    assert read_report(render_json(alike)) == alike


def test_cases_of_the_same_code_take_one_line_and_no_rows() -> None:
    report = passing_report()
    one, *_ = cases = tuple(dict.fromkeys(one.case for one in report.results))
    rows = tuple(
        replace(each, method="same_code", status="unchanged") if each.case == one else each
        for each in report.results
        if each.status == "unchanged"
    )
    report = same(replace(report, results=rows), one)
    line = "1 case unchanged: the same code on both sides"
    text = render_terminal(report, 200, color=False)
    assert f"{line} ({one})" in text
    assert text.count(one) == 1
    assert line not in render_terminal(report, 200, color=False, verbose=True)
    comment = render_markdown(report)
    assert "**Unchanged: the same code on both sides**" in comment
    assert comment.count(str(code(one))) == 1
    assert len(cases) > 1


def test_what_moved_of_the_same_code_is_told_as_noise() -> None:
    moved = replace(passing_report(), results=(row(EAGER, "latency_p50", 1.0, 1.3, "regressed"),))
    assert "noise" in same_code_text(same(moved, EAGER))
    assert same_code_text(moved) == ""


@pytest.mark.parametrize(
    "changed",
    [
        {"ran": None},
        {"ran": Ran(None, side("b", **{EAGER: "f"}))},
        {"ran": Ran(side("a", **{EAGER: "e"}), side("b", **{EAGER: "f"}))},
        {"ran": Ran(side("a"), side("b"))},
        {"same_code": ("nobody",)},
    ],
)
def test_a_report_that_contradicts_what_ran_is_refused(changed: dict[str, object]) -> None:
    report = replace(passing_report(), results=(row(EAGER, "latency_p50", 1.0, 1.0, "unchanged"),))
    read_report(render_json(same(report, EAGER)))
    with pytest.raises(DamagedFile, match="same_code"):
        read_report(render_json(replace(same(report, EAGER), **changed)))


def test_shards_are_joined_and_trees_that_differ_are_none() -> None:
    first, second = same(passing_report(), "a"), same(passing_report(), "b")
    joined = joined_ran((first, second))
    assert joined is not None
    assert (joined.head.tree, set(joined.head.cases)) == ("b" * 40, {"a", "b"})
    assert joined.head.compiled == (LIBRARY,)
    assert joined_same_code((first, second)) == ("a", "b")
    assert first.ran is not None
    other = replace(second, ran=Ran(None, replace(first.ran.head, tree="c" * 40)))
    joined = joined_ran((first, other))
    assert joined is not None
    assert joined.head.tree == ""
    assert joined_ran((passing_report(),)) is None


@pytest.mark.parametrize("sides", [("base",), ("head",), ("base", "head")])
def test_wrong_code_is_an_error_on_whichever_side(sides: tuple[str, ...]) -> None:
    policy = default_policy()
    failures = tuple(Failure("a", one, "finish", WRONG_CODE, "not its own") for one in sides)
    rows = (*failure_rows(failures, (), policy), *passing_report().results)
    assert rows[0].status == "failed"
    assert decide(rows, failures, policy).status == "error"
