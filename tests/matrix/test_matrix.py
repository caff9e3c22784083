"""Real projects in the ways that users install them: what is measured is each commit's own code.

Each way to install is here, each layout with each content, and each place to import from with each
layout and content.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from tests.matrix.cells import Built, Cell
from tests.matrix.installs import INSTALLS
from tests.matrix.layouts import LAYOUTS, Content
from tests.matrix.outcome import Outcome
from tests.matrix.places import PLACES, Place

pytestmark = [pytest.mark.processes, pytest.mark.slow]


_INSTALLS: dict[str, dict[Content, tuple[str, ...]]] = {
    "flat": {
        "pure": ("hatchling, exact", "nothing installed"),
        "compiled": ("setuptools",),
        "compiled beside": ("scikit-build-core",),
    },
    "src": {
        "pure": ("setuptools, compat",),
        "compiled": ("meson-python",),
        "compiled beside": ("setuptools, strict",),
    },
    "monorepo": {
        "pure": ("hatchling",),
        "compiled": ("a path file",),
        "compiled beside": ("setuptools",),
    },
    "namespace": {
        "pure": ("a copy",),
        "compiled": ("setuptools, strict",),
        "compiled beside": ("a path file",),
    },
}


def _covering() -> list[tuple[Cell, tuple[Place, ...]]]:
    """Return a cell of each layout and content, with two places: the top, and another in turn."""
    layouts, installs = ({each.name: each for each in group} for group in (LAYOUTS, INSTALLS))
    top, *others = PLACES
    return [
        (Cell(layouts[layout], installs[name], content), (top, others[(row + column) % 3]))
        for row, (layout, contents) in enumerate(_INSTALLS.items())
        for column, (content, names) in enumerate(contents.items())
        for name in names
    ]


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
    layouts, contents = {layout.name for layout in LAYOUTS}, set(get_args(Content))
    assert {cell.install.name for cell, _ in cells} == {how.name for how in INSTALLS}
    assert not [cell for cell, _ in cells if cell.left_out]
    pairs = {(cell.layout.name, cell.content) for cell, _ in cells}
    assert pairs == set(product(layouts, contents))
    for place in PLACES:
        those = [cell for cell, places in cells if place in places]
        assert {cell.layout.name for cell in those} == layouts
        assert {cell.content for cell in those} == contents
