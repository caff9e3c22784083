"""Files and the terminal: a failure of one doesn't lose the other."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from perfci.cli.printing import be_quiet
from perfci.cli.report import conclude, deliver, show_report
from perfci.config.loading import Config
from perfci.errors import OutsideError
from perfci.model.finding import stated
from perfci.model.report import Verdict
from perfci.report.exporters.json import render as render_json
from tests.builders.project import Project
from tests.report.examples import rich_report


def test_a_file_that_cannot_be_written_does_not_take_the_table_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = {"json": tmp_path / "gone" / "r.json", "markdown": tmp_path / "c.md"}
    with pytest.raises(OutsideError, match="can't be written"):
        deliver(rich_report(), outputs, verbose=False)
    assert "perfci: fail" in capsys.readouterr().out
    assert (tmp_path / "c.md").exists()


class Recording:
    """What was measured, with a history that takes it or is full."""

    report = rich_report()

    def __init__(self, full: str = "") -> None:
        self.full = full
        self.recorded = False

    def record(self) -> None:
        if self.full:
            raise OutsideError("history-lost", self.full, "Make room.")
        self.recorded = True


def test_a_file_that_cannot_be_written_keeps_no_run_from_the_history(tmp_path: Path) -> None:
    measured, outputs = Recording(), {"json": tmp_path / "gone" / "r.json"}
    with pytest.raises(OutsideError, match="can't be written"):
        conclude(measured, outputs, Config(), verbose=False)
    assert measured.recorded


def test_a_file_and_a_history_that_cannot_be_written_are_both_said(tmp_path: Path) -> None:
    outputs = {"json": tmp_path / "gone" / "r.json"}
    with pytest.raises(OutsideError, match=r"can't be written.*; the history is full") as caught:
        conclude(Recording("the history is full"), outputs, Config(), verbose=False)
    assert "shown on the terminal" in caught.value.advice
    assert "Make room." in caught.value.advice


@pytest.fixture
def quiet() -> Iterator[None]:
    """A command that was called with ``-q``."""
    be_quiet(on=True)
    yield
    be_quiet(on=False)


def test_quiet_prints_a_reason_without_its_escape_sequences(
    quiet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = stated("x: \x1b]0;title\x07\x1b[31mboom\nbang")
    report = rich_report(verdict=Verdict("error", (reason, stated("y: bang"))))
    show_report(report, verbose=False)
    assert capsys.readouterr().out == "error: x: boom bang (and 1 more)\n"


def test_quiet_tells_what_was_injected_and_the_headline_where_nothing_is_wrong(
    quiet: None, capsys: pytest.CaptureFixture[str]
) -> None:
    passed = replace(rich_report(), results=(), failures=(), verdict=Verdict("pass", ()))
    show_report(passed, verbose=False)
    assert capsys.readouterr().out.startswith("pass: no regression in ")
    show_report(replace(passed, injected={"latency": 0.02}), verbose=False)
    out = capsys.readouterr().out
    assert out.startswith("pass: injected into head on purpose: latency +2 %")
    assert "no regression in " in out
    assert out.count("\n") == 1


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_no_color_is_heeded_on_a_terminal(
    project: Project, tmp_path: Path, no_color: str, coloured: bool
) -> None:
    path = tmp_path / "report.json"
    path.write_text(render_json(rich_report()), encoding="utf-8")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "perfci", "report", str(path)],
        cwd=project.folder,
        env=project.environment(NO_COLOR=no_color, TERM="xterm"),
        stdout=theirs,
    ):
        os.close(theirs)
        printed = _read_all(ours)
    assert b"perfci: fail" in printed
    assert (b"\x1b[" in printed) is coloured


def _read_all(terminal: int) -> bytes:
    read = b""
    with (
        suppress(OSError),
        os.fdopen(terminal, "rb", buffering=0) as file,
    ):  # EIO: the other is gone
        while part := file.read(4096):
            read += part
    return read
