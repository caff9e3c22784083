"""What fails nothing and is undecided: one line of the comment, and no row."""

from __future__ import annotations

from dataclasses import replace

from perfci.report.outline import outline, unseen_text
from tests.report.examples import rich_report


def test_what_only_informs_is_not_listed_as_not_decided() -> None:
    report = rich_report()
    undecided = [replace(row, status="inconclusive") for row in report.results]
    found = outline(replace(report, results=tuple(undecided)))
    assert {row.gate for row in found.undecided} == {"fail"}
    assert all(row.gate != "fail" for row in found.groups["unseen"])
    assert len(found.undecided) + len(found.groups["unseen"]) == len(undecided)


def test_it_is_said_in_one_line_with_what_would_show_more() -> None:
    row = replace(rich_report().results[0], gate="info", status="inconclusive", detectable=0.1)
    text = unseen_text((row, replace(row, case="other", detectable=0.2)))
    assert text.startswith(f"{row.metric} in 2 cases, at worst a change of 20 %")
    assert text.endswith("More `--rounds` show smaller changes.")
    assert unseen_text(()) == ""
