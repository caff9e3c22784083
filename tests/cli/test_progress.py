"""What a terminal shows while a session measures, and how it folds what it is told."""

from __future__ import annotations

import os
import shutil

import click
import pytest

from perfci.cli import printing
from perfci.cli.printing import ProgressLine
from perfci.measure.progress import Progress

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


def test_elsewhere_the_progress_is_a_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = shown(Progress("encoder", 1, 9, 18, 25.0, lambda: 75.0), capsys)
    assert line == "[9/18 rounds, 25 s, 1 min 15 s left] encoder\n"
    assert (
        shown(Progress("x", 1, 19, 18, 3.0, lambda: 1.0), capsys)
        == "[19 rounds, 3 s, 1 s left] x\n"
    )
