"""Real projects in the ways that users install them: what is measured is each commit's own code.

Each pair of a layout, a way to install and a content is here at least once, and every place to
import from. ``python -m tests.matrix.table`` measures all of them and writes the docs' table.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tests.matrix.cells import Built, Cell
from tests.matrix.installs import INSTALLS
from tests.matrix.layouts import LAYOUTS, Content
from tests.matrix.outcome import Outcome

pytestmark = [pytest.mark.processes, pytest.mark.slow]


def _covering() -> list[Cell]:
    """Return a cell for each layout and install. Contents take turns, the quick one twice."""
    turns: tuple[Content, ...] = ("pure", "compiled", "pure", "compiled beside")
    cells = []
    for row, layout in enumerate(LAYOUTS):
        for column, how in enumerate(INSTALLS):
            cell = Cell(layout, how, turns[(row + column) % len(turns)])
            cells.append(Cell(layout, how, "pure") if cell.left_out else cell)
    return [cell for cell in cells if not cell.left_out]


@pytest.mark.parametrize("cell", _covering(), ids=str)
def test_each_side_runs_its_own_code(cell: Cell, tmp_path: Path) -> None:
    built = Built(cell, tmp_path)
    for place, finding in built.findings().items():
        if finding.after:
            assert _names_a_file_of(built, finding.first), (place.name, finding.first)
        assert finding.last.markers == cell.expected, (place.name, finding)


def _names_a_file_of(built: Built, outcome: Outcome) -> bool:
    """Files of the checkout are named relative to it."""
    named = re.findall(r"[^\s`'\",;()]+\.(?:py|so)\b", outcome.refusal)
    return any((built.project.folder / one).is_file() for one in named)


def test_each_pair_is_there() -> None:
    cells = _covering()
    assert {(one.layout.name, one.install.name) for one in cells} == {
        (layout.name, how.name)
        for layout in LAYOUTS
        for how in INSTALLS
        if layout.name not in how.left_out
    }
    for content in get_args(Content):
        those = [one for one in cells if one.content == content]
        assert {one.layout.name for one in those} == {layout.name for layout in LAYOUTS}
        assert {one.install.name for one in those} == {
            how.name for how in INSTALLS if content not in how.left_out
        }
