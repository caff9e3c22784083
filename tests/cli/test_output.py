"""Files and the terminal: a failure of one doesn't lose the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.cli.report import deliver
from perfci.errors import OutsideError
from tests.report.examples import rich_report


def test_a_file_that_cannot_be_written_does_not_take_the_table_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = {"json": tmp_path / "gone" / "r.json", "markdown": tmp_path / "c.md"}
    with pytest.raises(OutsideError, match="can't be written"):
        deliver(rich_report(), outputs, verbose=False)
    assert "perfci: fail" in capsys.readouterr().out
    assert (tmp_path / "c.md").exists()
