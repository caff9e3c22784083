"""A cell: a real project, installed in one way, and what perfci measures of it.

A repository with base and head, whose checkout stands at head and is installed from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import get_args

from tests.builders.project import Project
from tests.matrix.environment import Environment
from tests.matrix.installs import INSTALLS, Install, install
from tests.matrix.layouts import LAYOUTS, Content, Layout, library
from tests.matrix.outcome import Outcome, compare
from tests.matrix.places import PLACES, Place, files

TARGET = "{python} -m pip install --no-deps --no-build-isolation --target .perfci-build"
IGNORED = "__pycache__/\n.venv/\nbuild/\n*.egg-info/\n*.so\n"


@dataclass(frozen=True, slots=True)
class Cell:
    layout: Layout
    install: Install
    content: Content

    def __str__(self) -> str:
        return f"{self.layout.name}, {self.install.name}, {self.content}"

    @property
    def left_out(self) -> str:
        """Why there is no such cell, or nothing."""
        reasons = self.install.left_out
        return reasons.get(self.content) or reasons.get(self.layout.name, "")

    @property
    def expected(self) -> tuple[float, float]:
        """The markers of base and head: a digit for each file that has one."""
        digits = len(self.layout.distributions) + (self.content != "pure")
        return float("1" * digits), float("2" * digits)

    @property
    def setting(self) -> str:
        """The lines of configuration that docs/what-ran.md gives for such a project."""
        parts = self.layout.distributions
        folders = dict.fromkeys((".", "src", *(normpath(f"{p.folder}/{p.source}") for p in parts)))
        commands = []
        for part in (part for part in parts if part.extension(self.content)):
            if "setup.py" in self.install.files(part, self.content):
                commands.append(f"cd {part.folder} && {{python}} setup.py build_ext --inplace")
            else:
                commands.append(f"{TARGET} ./{part.folder}")
                folders = {".perfci-build": None, **folders}
        return f"python_path = {[*folders]}\nbuild = {commands}"


CELLS = tuple(
    Cell(layout, how, content)
    for layout in LAYOUTS
    for how in INSTALLS
    for content in get_args(Content)
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One place of a cell: measured at once, or refused and measured ``after`` it was mended."""

    first: Outcome
    after: Outcome | None = None

    @property
    def last(self) -> Outcome:
        return self.after or self.first


class Built:
    """A cell's project on disk, its environment in ``.venv`` as users have it.

    A session that was refused as a whole hides what its other places are: with ``apart`` each has
    a file of its own, and is then measured alone.
    """

    def __init__(
        self,
        cell: Cell,
        folder: Path,
        *,
        apart: bool = False,
        places: tuple[Place, ...] = PLACES,
    ) -> None:
        self.cell = cell
        self.setting = cell.setting
        self.apart = apart
        self.places = places
        self.project = Project(folder / "project")
        (self.project.folder / "pyproject.toml").unlink()
        self.project.write(".gitignore", IGNORED)
        for path, text in files(cell.layout.imported, places, apart=apart).items():
            self.project.write(path, text)
        for one in cell.layout.distributions:
            for path, text in cell.install.files(one, cell.content).items():
                self.project.write(f"{one.folder}/{path}", text)
        for marker in (1, 2):
            for path, text in library(cell.layout, cell.content, marker):
                self.project.write(path, text)
            self.project.commit(f"marker {marker}")
            if marker == 1:
                self.project.git("checkout", "--quiet", "-b", "feature")
        self.environment = Environment(self.project.folder / ".venv")
        install(cell.layout, cell.install, self.environment, self.project.folder)

    def findings(self) -> dict[Place, Finding]:
        """Measure every place, and again those that were refused, with the cell's setting."""
        firsts = self._measure(self.places)
        if self.apart and len({id(outcome) for outcome in firsts.values()}) == 1:
            firsts = {place: self._measure((place,))[place] for place in self.places}
        refused = tuple(place for place in self.places if not firsts[place].markers)
        afters = self._measure(refused, self.setting) if refused else {}
        return {place: Finding(firsts[place], afters.get(place)) for place in self.places}

    def _measure(self, places: tuple[Place, ...], setting: str = "") -> dict[Place, Outcome]:
        outcomes = compare(
            self.project,
            self.environment,
            [place.slug for place in places],
            pattern=places[0].slug if self.apart and len(places) == 1 else "*",
            setting=setting,
        )
        return {place: outcomes[place.slug] for place in places}
