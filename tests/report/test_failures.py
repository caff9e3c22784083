"""Failures as people read them: said once, with the output they share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.model.case import Failure
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.outline import likeness
from perfci.report.terminal import render_terminal
from tests.report.examples import bare, rich_report

TAIL = 'File "/home/u/.cache/perfci/12ab/trees/perfci-{name}/lib.py", line 3\nBoom: pid {pid}\n'


def failure(side: str, name: str, pid: int) -> Failure:
    return Failure("broken", side, "setup", "Boom", "lib is gone", TAIL.format(name=name, pid=pid))


BOTH = (failure("base", "a1b2", 41), failure("head", "c3d4", 4242))


@pytest.mark.parametrize("renderer", ["terminal", "markdown"])
def test_what_fails_alike_on_both_sides_is_shown_once(renderer: str) -> None:
    text = rendered(renderer, *BOTH)
    assert text.count("Boom: pid") == 1
    assert "failed on base and head in setup" in text


@pytest.mark.parametrize("renderer", ["terminal", "markdown"])
def test_what_fails_alike_in_forty_cases_is_said_once(renderer: str) -> None:
    many = [replace(each, case=f"case[n={n}]") for n in range(40) for each in BOTH]
    text = rendered(renderer, *many)
    assert text.count("Boom: pid") == 1
    assert ("n=4" in text, "n=5" in text) == (True, False)
    assert "35 more" in text


@pytest.mark.parametrize("renderer", ["terminal", "markdown"])
def test_what_fails_in_two_ways_is_shown_twice(renderer: str) -> None:
    other = replace(BOTH[1], log_tail="Boom: pid unknown\n")
    text = rendered(renderer, BOTH[0], other)
    assert text.count("Boom: pid") == 2
    assert "failed on base in setup" in text
    assert "failed on head in setup" in text


@pytest.mark.parametrize("renderer", ["terminal", "markdown"])
def test_a_failure_on_base_alone_is_its_new_row_and_no_more(renderer: str) -> None:
    row = bare("broken", "new", "base failed in setup (Boom): lib is gone")
    report = rich_report(results=(row,), failures=(BOTH[0],), notes=())
    text = (
        render_terminal(report, 120, False) if renderer == "terminal" else render_markdown(report)
    )
    assert text.count("lib is gone") == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/a/trees/x1/lib.py", "/b/c/trees/y2/lib.py"),
        ("at '/a/builds/x1/lib.py': no", "at '/b/builds/y2/lib.py': no"),
        ("/a/trees/x/trees/y1", "/a/trees/z2"),
        ("/a/trees/trees/x", "/builds/y"),
    ],
)
def test_the_folder_that_a_side_was_built_in_makes_no_difference(one: str, other: str) -> None:
    assert told(one) == told(other)
    assert told(one) != told(one + "/more")


@pytest.mark.parametrize("text", ["/trees/", "trees/x", "/a/trees//x", "a/b/c"])
def test_what_names_no_such_folder_stays(text: str) -> None:
    assert told(text)[-2] == text


@pytest.mark.parametrize("repeated", ["/", "x/", "/trees", "/trees/", "1"])
def test_a_log_of_slashes_takes_no_longer_than_a_log(repeated: str) -> None:
    """The square of its length would take an hour and more: pytest's time-out is what fails."""
    assert len(told(repeated * (200_000 // len(repeated)))) == 5


def told(message: str) -> tuple[str, ...]:
    return likeness(Failure("broken", "head", "setup", "Boom", message, ""))


def rendered(renderer: str, *failures: Failure) -> str:
    row = bare("broken", "failed", "base failed in setup (Boom): lib is gone")
    report = rich_report(results=(row,), failures=failures)
    return (
        render_terminal(report, 120, False) if renderer == "terminal" else render_markdown(report)
    )
