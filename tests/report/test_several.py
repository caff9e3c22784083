"""One comment on several environments: the worst first, and nothing said twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.errors import UsageError
from perfci.finding import Explanation, stated
from perfci.model.case import Failure
from perfci.model.report import Report, Verdict
from perfci.model.run import Environment
from perfci.report.exporters.markdown import MARKER, render_comment
from perfci.report.terminal import render_terminal
from tests.report.examples import EAGER, FACTS, passing_report, rich_report, row

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


def test_the_worst_verdict_is_the_comments_and_every_environment_is_named_at_once() -> None:
    reports = [on("NVIDIA A100", passing_report()), slower_on("NVIDIA H200", 0.2)]
    lines = render_comment(reports).splitlines()
    assert lines[0] == MARKER
    assert lines[1] == "### ❌ perfci: pass on NVIDIA A100; fail on NVIDIA H200"


def test_a_part_of_a_report_says_so_loudly() -> None:
    part = replace(passing_report(), shard="2/4")
    lines = render_comment([part]).splitlines()
    assert lines[1] == "### ❔ perfci: no regression in 2 cases (shard 2/4 alone)"
    elsewhere = "other cases were measured elsewhere, <code>perfci merge</code> joins all"
    assert lines[3:5] == ["> [!WARNING]", f"> shard 2/4 alone: {elsewhere}"]
    two = render_comment([on("A", part), on("B", passing_report())])
    assert "### ❔ perfci: incomplete: pass (shard 2/4 alone) on A; pass on B" in two
    assert "shard 2/4 alone" in render_terminal(part, 80, False)


def test_several_reports_are_cut_to_the_limit_and_still_render() -> None:
    reports = [on(name, rich_report()) for name in ("A", "B", "C")]
    for limit in range(900, 9000, 303):
        text = render_comment(reports, limit, SHA)
        assert len(text) <= limit
        assert text.count("<details>") == text.count("</details>")
        assert sum(line.startswith("```") for line in text.splitlines()) % 2 == 0


@pytest.mark.parametrize("sha", ["--> <img>", "c" * 65, "abc", "main", f"{SHA}\n"])
def test_what_is_no_commit_does_not_get_into_the_marker(sha: str) -> None:
    with pytest.raises(UsageError, match="not a commit's hash"):
        render_comment([passing_report()], head_sha=sha)
