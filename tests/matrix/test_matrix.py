"""Real projects in the ways that users install them: what is measured is each commit's own code.

Each pair of a layout, a way to install, a content and a place to import from is here at least once.
``python -m tests.matrix.table`` measures all of them and writes the docs' table.
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
from tests.matrix.places import PLACES, Place

pytestmark = [pytest.mark.processes, pytest.mark.slow]


def _covering() -> list[tuple[Cell, tuple[Place, ...]]]:
    """Return a cell for each layout and install, with two places: the top, and another in turn.

    Contents take turns, too, the quick one twice.
    """
    turns: tuple[Content, ...] = ("pure", "compiled", "pure", "compiled beside")
    top, *others = PLACES
    chosen = []
    for row, layout in enumerate(LAYOUTS):
        for column, how in enumerate(INSTALLS):
            turn = row + column
            cell = Cell(layout, how, turns[turn % len(turns)])
            cell = Cell(layout, how, "pure") if cell.left_out else cell
            chosen.append((cell, (top, others[turn % len(others)])))
    return [(cell, places) for cell, places in chosen if not cell.left_out]


@pytest.mark.parametrize(
    ("cell", "places"), [pytest.param(*one, id=str(one[0])) for one in _covering()]
)
def test_each_side_runs_its_own_code(cell: Cell, places: tuple[Place, ...], tmp_path: Path) -> None:
    built = Built(cell, tmp_path, places=places)
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
    assert {(one.layout.name, one.install.name) for one, _ in cells} == {
        (layout.name, how.name)
        for layout in LAYOUTS
        for how in INSTALLS
        if layout.name not in how.left_out
    }
    for content in get_args(Content):
        those = [one for one, _ in cells if one.content == content]
        assert {one.layout.name for one in those} == {layout.name for layout in LAYOUTS}
        assert {one.install.name for one in those} == {
            how.name for how in INSTALLS if content not in how.left_out
        }
    for place in PLACES:
        those = [one for one, places in cells if place in places]
        assert {one.layout.name for one in those} == {layout.name for layout in LAYOUTS}
        assert {one.install.name for one in those} == {how.name for how in INSTALLS}
        assert {one.content for one in those} == set(get_args(Content))
