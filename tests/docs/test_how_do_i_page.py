"""docs/how-do-i.md: what it shows of Python can be run as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from perfci.report.exporters.json import render as render_json
from tests.docs.pages import page, section
from tests.report.examples import rich_report


def test_the_frame_of_the_notebook_has_the_rows_and_columns_that_are_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = rich_report()
    (tmp_path / "report.json").write_text(render_json(report), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    told = section(page("how-do-i.md"), "## Use the numbers in Python?")
    (program,) = re.findall(r"```python\n(.*?)```", told, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)
    assert len(names["frame"]) == len(report.results)
    assert {"case", "base_center", "head_hi", "p_adjusted"} <= set(names["frame"].columns)
