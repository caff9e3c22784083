"""What a terminal shows while a session measures, and how it folds what it is told."""

from __future__ import annotations

import os
import shutil

import click
import pytest

from perfci.cli import printing
from perfci.cli.printing import ProgressLine, folded
from perfci.measure.progress import Progress, Shortage
from perfci.report.clean import clean_lines
from tests.builders.project import Project

CASE = "attention_with_a_long_name[batch=16,variant=a_rather_long_name_of_a_variant]"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have standard error be a terminal of 80 columns."""
    monkeypatch.setattr(printing, "is_terminal", lambda *, err=False: err)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((80, 24)))


def shown(progress: Progress, capsys: pytest.CaptureFixture[str]) -> str:
    ProgressLine()(progress)
    return click.unstyle(capsys.readouterr().err).rpartition("\r")[2]


def test_a_terminal_has_a_bar_with_the_time_that_passed_and_is_left(
    terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    line = shown(Progress(CASE, 1, 9, 18, 25.0, lambda: 75.0), capsys)
    assert len(line) == 79
    assert "9/18 rounds, 25 s, 1 min 15 s left attention_with" in line
    assert line.endswith("…")
    bar = line.partition(" ")[0]
    assert set(bar) <= set("━╸╺")
    begun = shown(Progress("encoder", 1, 0, 18, 2.0, lambda: None), capsys)
    assert "0/18 rounds, 2 s encoder" in begun


def test_more_rounds_than_were_planned_are_no_share_of_them(
    terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert " 19 rounds, 3 s, 1 s left encoder" in shown(
        Progress("encoder", 1, 19, 18, 3.0, lambda: 1.0), capsys
    )


def test_elsewhere_the_progress_is_a_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = shown(Progress("encoder", 1, 9, 18, 25.0, lambda: 75.0), capsys)
    assert line == "[9/18 rounds, 25 s, 1 min 15 s left] encoder\n"
    assert (
        shown(Progress("x", 1, 19, 18, 3.0, lambda: 1.0), capsys)
        == "[19 rounds, 3 s, 1 s left] x\n"
    )


def test_a_budget_that_is_too_short_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine()
    for number in range(2):
        line(
            Progress(
                "encoder", 1, number, 9, 1.0, lambda: 2.0, shortage=Shortage(40, 12, 60, 540.0, 60)
            )
        )
    told = "40 cases need about 9 min 0 s; 1 min 0 s given: about 12 are measured"
    assert capsys.readouterr().err.count(told) == 1


def test_a_step_that_is_too_long_ends_with_an_ellipsis(
    terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    ProgressLine().say("looking inside " + "x" * 90)
    line = capsys.readouterr().err.rpartition("\r")[2]
    assert line == "looking inside " + "x" * 63 + "…"


def test_a_terminal_gets_whole_words_and_whole_commands(terminal: None) -> None:
    text = f"a sentence {'of words ' * 9}and `perfci compare HEAD~1 HEAD` in it\n    {'x ' * 50}end"
    lines = folded(clean_lines(text))
    assert all(len(line) <= 80 for line in lines[:-1])
    assert any("`perfci compare HEAD~1 HEAD`" in line for line in lines)
    assert lines[-1] == f"    {'x ' * 50}end"
    assert " ".join(lines[:-1]) == text.partition("\n")[0]


def test_an_error_is_folded_on_a_terminal_and_nowhere_else(
    project: Project, terminal: None
) -> None:
    project.commit("first")
    message = project.perfci("bisect", "HEAD").err.partition("\n")[0]
    assert len(message) <= 80


def test_an_error_is_one_line_in_a_log(project: Project) -> None:
    project.commit("first")
    message = project.perfci("bisect", "HEAD").err.partition("\n")[0]
    assert message.endswith("no change of the history has that id")
