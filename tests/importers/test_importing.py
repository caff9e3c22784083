"""``perfci history import`` of other tools' files: everything, once."""

from __future__ import annotations

import os
from pathlib import Path

from tests.builders.in_process import Done, in_process


def perfci(folder: Path, *arguments: str) -> Done:
    asked = ("history", *arguments, "--history", "history.sqlite")
    return in_process(asked, folder, os.environ).without_traceback()


def test_a_file_that_is_not_what_it_says_is_told_and_nothing_is_added(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"machine_info": {}, "benchmarks": 3}')
    done = perfci(tmp_path, "import", "x.json")
    assert done.code == 4
    assert "x.json looks like a result file of pytest-benchmark, but: Expected `array`" in done.err
    assert perfci(tmp_path, "export").code == 2  # there is no history: none was begun
