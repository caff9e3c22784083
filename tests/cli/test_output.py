"""Files and the terminal: a failure of one doesn't lose the other."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from perfci.cli.report import deliver
from perfci.errors import OutsideError
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
