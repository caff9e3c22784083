"""One comment on several environments: the worst first, and nothing said twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.errors import UsageError
from perfci.model.case import Failure
from perfci.model.finding import stated
from perfci.model.report import Explanation, Report, Verdict
from perfci.model.run import Environment
from perfci.report.exporters.markdown import MARKER, render_comment
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.links import environment_names
from perfci.report.terminal import render_terminal
from tests.report.examples import (
    EAGER,
    FACTS,
    alone_report,
    passing_report,
    rich_report,
    row,
)
from tests.report.rendered import with_markdown_it

SHA = "c" * 40
LOG = Failure("generate", "head", "setup", "RuntimeError", "shapes", "Boom: line one\n")
BREAK = Explanation(EAGER, "graph_breaks", "graph_break", "call to print()", "lib.py", 41)


def on(device: str, report: Report, **facts: str) -> Report:
    return replace(
        report,
        environment=Environment(f"key-{device}", {**FACTS, "device_name": device, **facts}),
    )


def slower_on(device: str, by: float) -> Report:
    results = (row(EAGER, "latency_p50", 1.0, 1.0 + by, "regressed"),)
    verdict = Verdict("fail", (stated(f"{EAGER}: latency_p50 worse", EAGER, "latency_p50"),))
    return on(
        device,
        rich_report(
            results=results, failures=(LOG,), explanations=(BREAK,), verdict=verdict, notes=()
        ),
    )


def test_one_report_gives_what_render_markdown_gives() -> None:
    for report in (rich_report(), passing_report(), alone_report()):
        text = render_comment([report])
        assert text == render_markdown(report)
        first, *rest = text.splitlines()
        with_head = render_comment([report], head_sha=SHA).splitlines()
        assert with_head == [first, f"<!-- perfci head={SHA} -->", *rest]


def test_the_worst_verdict_is_the_comments_and_every_environment_is_named_at_once() -> None:
    reports = [on("NVIDIA A100", passing_report()), slower_on("NVIDIA H200", 0.2)]
    lines = render_comment(reports).splitlines()
    assert lines[0] == MARKER
    assert lines[1] == "### ❌ perfci: pass on NVIDIA A100; fail on NVIDIA H200"


def test_each_environments_rows_stand_in_its_section() -> None:
    text = render_comment([slower_on("NVIDIA A100", 0.1), slower_on("NVIDIA H200", 0.3)])
    first, second = text.split("#### ❌ NVIDIA H200 — ")
    first, second = (one.replace("\N{NO-BREAK SPACE}", " ") for one in (first, second))
    assert "#### ❌ NVIDIA A100 — 1 regression in 1 case, 1 case failed" in first
    assert "+10.0 %" in first
    assert "+30.0 %" in second
    assert "+30.0 %" not in first


def test_what_two_environments_have_in_common_is_said_once() -> None:
    both = [slower_on("NVIDIA A100", 0.1), slower_on("NVIDIA H200", 0.3)]
    text = render_comment(both)
    page = with_markdown_it(text)
    assert text.count("call to print()") == 1
    assert "- 1 as above" in text
    assert text.count("Boom: line one") == 1
    assert "<code>generate</code> failed as above" in text
    assert text.count("<code>main</code> <code>aaaaaaaaaaaa</code> → ") == 1
    assert text.count("needs 16 GiB") == 1
    assert page.cells.count("AMD EPYC 9654") == 1
    assert page.cells.count("NVIDIA H200") == 1  # the fact; as a column it is a heading
    assert len(text) < 1.7 * len(render_comment(both[:1]))


def test_what_differs_is_said_of_each() -> None:
    first = replace(on("A", passing_report()), notes=("the fan was loud", "all saw this"))
    second = replace(
        on("B", passing_report()),
        notes=("all saw this",),
        head=replace(passing_report().head, sha="d" * 40),
    )
    text = render_comment([first, second])
    assert "- the fan was loud (on A)" in text
    assert "- all saw this\n" in text
    assert "dddddddddddd" in text
    assert text.count("aaaaaaaaaaaa") == 2  # base stands beside each of two heads


def test_one_device_twice_is_told_apart_by_what_differs() -> None:
    reports = [on("NVIDIA H200", passing_report(), torch=torch) for torch in ("2.5.1", "2.6.0")]
    assert environment_names(reports) == (
        "NVIDIA H200, torch 2.5.1",
        "NVIDIA H200, torch 2.6.0",
    )
    same = on("NVIDIA H200", passing_report(), libc="glibc 2.36")
    named = environment_names([replace(same, environment=replace(same.environment, key="k")), same])
    assert named == ("NVIDIA H200 (k)", "NVIDIA H200 (key-NVIDIA H200)")


def test_without_a_gpu_the_processor_is_the_name() -> None:
    assert environment_names([passing_report()]) == ("AMD EPYC 9654",)


def test_a_part_of_a_report_says_so_loudly() -> None:
    part = replace(passing_report(), shard="2/4")
    lines = render_comment([part]).splitlines()
    assert lines[1] == "### ❔ perfci: no regression in 2 cases (shard 2/4 alone)"
    elsewhere = "other cases were measured elsewhere, <code>perfci merge</code> joins all"
    assert lines[3:5] == ["> [!WARNING]", f"> shard 2/4 alone: {elsewhere}"]
    two = render_comment([on("A", part), on("B", passing_report())])
    assert "### ❔ perfci: incomplete: pass (shard 2/4 alone) on A; pass on B" in two
    assert "shard 2/4 alone" in render_terminal(part, 80, False)


def test_a_section_of_several_shows_its_worst_rows_and_folds_the_others() -> None:
    results = tuple(
        row(f"case_{number}", "latency_p50", 1.0, 1.2 + number / 100, "regressed")
        for number in range(30)
    )
    report = rich_report(results=results, failures=(), explanations=())
    open_part, folded = render_comment([report]).split("<details><summary>All else: ")
    assert open_part.count("| latency 1\N{NO-BREAK SPACE}→") == 8
    assert folded.startswith("22 more regressed")
    assert folded.count("| latency 1\N{NO-BREAK SPACE}→") == 22
    several = render_comment([on("A", report), on("B", report), on("C", report)])
    assert (
        several.split("<details><summary>How")[0].count("| latency 1\N{NO-BREAK SPACE}→") == 3 * 4
    )


def test_several_reports_are_cut_to_the_limit_and_still_render() -> None:
    reports = [on(name, rich_report()) for name in ("A", "B", "C")]
    for limit in range(900, 9000, 303):
        text = render_comment(reports, limit, SHA)
        assert len(text) <= limit
        assert text.count("<details>") == text.count("</details>")
        assert sum(line.startswith("```") for line in text.splitlines()) % 2 == 0


def test_no_two_blank_lines_follow_each_other_in_a_comment_on_several() -> None:
    text = render_comment([on("A", rich_report()), on("B", passing_report())], head_sha=SHA)
    assert "\n\n\n" not in text


@pytest.mark.parametrize("sha", ["--> <img>", "c" * 65, "abc", "main", f"{SHA}\n"])
def test_what_is_no_commit_does_not_get_into_the_marker(sha: str) -> None:
    with pytest.raises(UsageError, match="no commit's hash"):
        render_comment([passing_report()], head_sha=sha)


def test_no_report_is_no_comment() -> None:
    with pytest.raises(UsageError, match="no report"):
        render_comment([])
