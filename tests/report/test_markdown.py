"""The comment on a pull request."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from perfci.config.loading import parse_config
from perfci.model.report import Accepted
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.rows import metric_words
from perfci.report.templates import LIMIT
from perfci.stats.t_tests import two_sided_p
from perfci.verdict.acceptance import accept
from tests.report.examples import alone_report, passing_report, rich_report, row
from tests.report.rendered import with_markdown_it

REPORTS = {"fail": rich_report, "pass": passing_report, "run": alone_report}


@pytest.mark.parametrize("name", REPORTS)
def test_the_comment_is_as_it_was(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"comment-{name}.md", render_markdown(REPORTS[name]()))


def test_the_effect_of_an_examples_row_fits_its_p() -> None:
    for one in (*rich_report().results, *passing_report().results):
        if one.p is not None and one.cohens_d is not None:
            assert two_sided_p(one.cohens_d * math.sqrt(6), 5.0) == pytest.approx(one.p)


def test_the_verdicts_other_reasons_stand_below_the_table() -> None:
    text = render_markdown(rich_report())
    assert 0 < text.index("| case | metric |") < text.index("- sampler: not comparable")


@pytest.mark.parametrize(
    ("case", "broken"),
    [("encoder[batch=16,mode=max-autotune]", False), ("a" * 48, False), ("a/b_" * 12, False),
     ("encoder[batch=16,length=128,mode=max-autotune,dtype=bfloat16]", True)],
)  # fmt: skip
def test_only_a_long_name_of_a_case_may_break(case: str, broken: bool) -> None:
    report = replace(passing_report(), results=(row(case, "latency_p50", 1.0, 1.5, "regressed"),))
    assert ("<wbr>" in render_markdown(report)) is broken


@pytest.mark.parametrize("metrics", [("jitter",), ("jitter", "latency_max", "latency_p99")])
def test_the_comment_names_metrics_that_are_too_noisy_to_say(metrics: tuple[str, ...]) -> None:
    noisy = [row("a", metric, 1.0, 1.1, "inconclusive", gate="info") for metric in metrics]
    text = render_markdown(replace(passing_report(), results=(*passing_report().results, *noisy)))
    assert f"{len(metrics)} too noisy to say" in text
    for metric in metrics:
        assert f"{metric} in 1 case, at worst a change of 1.2 % would have been detected" in text


@pytest.mark.parametrize("name", ["accepted", "warn", "info", "fail"])
def test_the_regressions_of_a_report_are_those_that_its_title_counts(name: str) -> None:
    changed = {"gate": name} if name != "accepted" else {"accepted": Accepted("because")}
    worse = row("a", "latency_p50", 1.0, 1.5, "regressed", **changed)
    report = rich_report(results=(*rich_report().results, worse))
    title = render_markdown(report).splitlines()[1]
    assert f" {len(report.regressions)} regressions " in title


def test_every_row_of_the_report_stands_somewhere() -> None:
    report = rich_report()
    page = with_markdown_it(render_markdown(report))
    text = "\n".join(page.cells) + page.everything
    for one in report.results:
        assert one.case in text
        assert one.head is None or any(
            cell.startswith(metric_words(one.metric)) for cell in page.cells
        )


def test_a_huge_report_is_cut_and_still_renders() -> None:
    rows = tuple(
        row(f"case_{number}", "latency_p50", 1.0, 1.2, "regressed") for number in range(2000)
    )
    text = render_markdown(rich_report(results=rows))
    page = with_markdown_it(text)
    assert len(text) <= LIMIT
    assert any(cell.startswith("case_") for cell in page.cells)
    assert "Cut to fit" in text


def test_a_cut_closes_what_is_open() -> None:
    for limit in range(700, 7000, 151):
        text = render_markdown(rich_report(), limit=limit)
        assert len(text) <= limit
        assert text.count("<details>") == text.count("</details>")
        assert sum(line.startswith("```") for line in text.splitlines()) % 2 == 0
        assert "pre" not in with_markdown_it(text).tags[-1]


def test_rows_that_no_comment_has_room_for_are_counted_and_not_written() -> None:
    many = tuple(row(f"case{number}", "latency_p50", 1, 1, "unchanged") for number in range(1_200))
    skipped = dict.fromkeys(map(str, range(1_300)), "no GPU")
    report = replace(passing_report(), results=many, skipped=skipped)
    text = render_markdown(report, limit=10**9)
    assert text.count("| <code>case") == 1_000 + 30  # and those of the statistics
    assert text.count("no GPU") == 1_000
    assert "- and 300 more" in text
    assert "1200 unchanged" in text


def test_a_case_that_was_not_measured_has_not_passed() -> None:
    rows = (
        row("slower", "latency_p50", 1.0, 1.2, "regressed"),
        row("alike", "latency_p50", 1.0, 1.0, "unchanged"),
        row("left_out", "latency_p50", 1.0, 1.0, "not_measured"),
    )
    assert "\n❌ 1 ❔ 1 ✅ 1 · " in render_markdown(rich_report(results=rows, failures=()))


@pytest.mark.parametrize(
    ("cases", "metrics", "entries"),
    [
        (1, ("latency_p50",), 1),
        (5, ("latency_p50",), 5),
        (6, ("latency_p50",), 1),
        (1, ("latency_p50", "cold_start", "peak_host_memory", "import_time") * 2, 4),
        (8, ("latency_p50", "cold_start"), 1),
    ],
)
def test_what_the_comment_offers_accepts_every_regression(
    cases: int, metrics: tuple[str, ...], entries: int
) -> None:
    row = next(row for row in rich_report().results if row.status == "regressed")
    rows = tuple(
        replace(row, case=f"case[{number}]", metric=metric, gate="fail", accepted=None)
        for number in range(cases)
        for metric in dict.fromkeys(metrics)
    )
    text = render_markdown(replace(rich_report(), results=rows))
    (toml,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    lines = parse_config(toml, "pyproject.toml").accept
    assert len(lines) == entries
    judged, findings = accept(rows, lines, "2026-11-29")
    assert all(row.accepted for row in judged)
    assert not findings
