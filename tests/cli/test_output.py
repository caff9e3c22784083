"""Files and the terminal: a failure of one doesn't lose the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfci.cli.printing import ProgressLine
from perfci.cli.report import deliver
from perfci.errors import OutsideError
from perfci.measure.progress import Progress
from tests.report.examples import rich_report


def test_a_file_that_cannot_be_written_does_not_take_the_table_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = {"json": tmp_path / "gone" / "r.json", "markdown": tmp_path / "c.md"}
    with pytest.raises(OutsideError, match="can't be written"):
        deliver(rich_report(), outputs, verbose=False)
    assert "perfci: fail" in capsys.readouterr().out
    assert (tmp_path / "c.md").exists()


@pytest.mark.parametrize("sessions", [[(0, 1, 2)], [(0, 1, 2), (0, 1), (0, 1, 2, 3)], [(0,), (0,)]])
def test_rounds_are_counted_over_all_sessions_of_a_command(
    monkeypatch: pytest.MonkeyPatch, sessions: list[tuple[int, ...]]
) -> None:
    shown: list[str] = []
    line = ProgressLine()
    monkeypatch.setattr(line, "_terminal", True)
    monkeypatch.setattr(line, "_show", shown.append)
    for rounds in sessions:
        for done in rounds:
            line(Progress("case", 1, done, len(rounds), 2.0 * done))
    counts = [tuple(map(int, re.findall(r"\d+", text)[:2])) for text in shown]
    assert [done for done, _ in counts] == list(range(len(counts)))
    assert counts[-1][1] == len(counts)
    seconds = [float(re.findall(r", ([\d.]+) s", text)[0]) for text in shown]
    assert seconds == sorted(seconds)
