"""Failures as people read them: said once, with the output they share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.model.case import Failure
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.terminal import render_terminal
from tests.report.examples import bare, rich_report

TAIL = 'File "/home/u/.cache/perfci/12ab/trees/perfci-{name}/lib.py", line 3\nBoom: pid {pid}\n'


def failure(side: str, name: str, pid: int) -> Failure:
    return Failure("broken", side, "setup", "Boom", "lib is gone", TAIL.format(name=name, pid=pid))


BOTH = (failure("base", "a1b2", 41), failure("head", "c3d4", 4242))


@pytest.mark.parametrize("renderer", ["terminal", "markdown"])
def test_what_fails_alike_in_forty_cases_is_said_once(renderer: str) -> None:
    many = [replace(each, case=f"case[n={n}]") for n in range(40) for each in BOTH]
    text = rendered(renderer, *many)
    assert text.count("Boom: pid") == 1
    assert ("n=4" in text, "n=5" in text) == (True, False)
    assert "35 more" in text


@pytest.mark.parametrize("renderer", ["terminal", "markdown"])
def test_a_failure_on_base_alone_is_its_new_row_and_no_more(renderer: str) -> None:
    row = bare("broken", "new", "base failed in setup (Boom): lib is gone")
    report = rich_report(results=(row,), failures=(BOTH[0],), notes=())
    text = (
        render_terminal(report, 120, False) if renderer == "terminal" else render_markdown(report)
    )
    assert text.count("lib is gone") == 1


def rendered(renderer: str, *failures: Failure) -> str:
    row = bare("broken", "failed", "base failed in setup (Boom): lib is gone")
    report = rich_report(results=(row,), failures=failures)
    return (
        render_terminal(report, 120, False) if renderer == "terminal" else render_markdown(report)
    )
