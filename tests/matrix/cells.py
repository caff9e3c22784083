"""A cell: a real project, installed in one way, and what perfci measures of it.

A repository with base and head, whose checkout stands at head and is installed from there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from tests.matrix.installs import INSTALLS, Environment, Install, install, with_builders
from tests.matrix.layouts import LAYOUTS, Content, Layout, library
from tests.matrix.places import PLACES, Place, benchmark
from tests.project import Project

CONFIGURATION = """\
rounds = 2
max_rounds = 2
round_time = 0.001
burst = 0.001
warmup = 0.001
timeout = 30
budget = "60s"
pattern = "bench_{places}.py"
"""
IGNORED = "__pycache__/\n.venv/\nbuild/\n*.egg-info/\n*.so\n"
_SETTING = re.compile(r"\b(?:build|python_path) = \[.*?\](?=$|[\s`.,;])", re.MULTILINE)
"""A line for the configuration, as it stands in a message."""


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
        return self.install.left_out.get(self.content, "")

    @property
    def expected(self) -> tuple[float, float]:
        """The markers of base and head: a digit for each file that has one."""
        digits = len(self.layout.distributions) + (self.content != "pure")
        return float("1" * digits), float("2" * digits)


CELLS = tuple(
    Cell(layout, how, content)
    for layout in LAYOUTS
    for how in INSTALLS
    for content in get_args(Content)
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What perfci said of one place: the markers that it measured, or why it refused.

    ``refusal`` is everything that it printed and reported as failures.
    """

    markers: tuple[float, float] | None
    refusal: str = ""

    @property
    def setting(self) -> str:
        """The line to put into the configuration, or nothing."""
        found = _SETTING.search(self.refusal)
        return found[0] if found else ""

    @property
    def slug(self) -> str:
        found = re.search(r"\[([a-z]+(?:-[a-z]+)+)\]|\b(wrong_code)\b", self.refusal)
        return (found[1] or found[2]) if found else ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One place of a cell: measured at once, or refused and measured ``after`` it was mended."""

    first: Outcome
    after: Outcome | None = None

    @property
    def last(self) -> Outcome:
        return self.after or self.first


class Built:
    """A cell's project on disk, its environment in ``.venv`` as users have it."""

    def __init__(self, cell: Cell, folder: Path) -> None:
        self.cell = cell
        self.project = Project(folder / "project")
        (self.project.folder / "pyproject.toml").unlink()
        self.project.write(".gitignore", IGNORED)
        for place in PLACES:
            self.project.write(*benchmark(place, cell.layout.imported))
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

    def findings(self, *, apart: bool) -> dict[Place, Finding]:
        """Measure every place, and again those that were refused, with the line that was named.

        A session that was refused as a whole hides what its other places are: with ``apart``
        each is then measured in one of its own.
        """
        firsts = self.measure(PLACES)
        if apart and len({id(outcome) for outcome in firsts.values()}) == 1:
            firsts = {place: self.measure((place,))[place] for place in PLACES}
        findings = {}
        for place, first in firsts.items():
            if first.markers or not first.setting:
                findings[place] = Finding(first)
        for setting in {firsts[place].setting for place in PLACES if place not in findings}:
            places = tuple(
                place
                for place in PLACES
                if place not in findings and firsts[place].setting == setting
            )
            after = self.measure(places, setting)
            findings |= {place: Finding(firsts[place], after[place]) for place in places}
        return {place: findings[place] for place in PLACES}

    def measure(self, places: tuple[Place, ...], setting: str = "") -> dict[Place, Outcome]:
        """Compare base with head, with one more line of configuration, both under one Python."""
        pattern = places[0].slug if len(places) == 1 else "*"
        self.project.write("perfci.toml", f"{CONFIGURATION.format(places=pattern)}{setting}\n")
        path = self.project.folder.parent / "report.json"
        path.unlink(missing_ok=True)
        python = self.environment.python
        pythons = ("--base-python", python, "--head-python", python)
        done = self.project.perfci(
            "compare", "main", "HEAD", *pythons, "--json", str(path), PATH=with_builders()["PATH"]
        ).without_traceback()
        if not path.exists():
            whole = Outcome(None, done.text)
            return dict.fromkeys(places, whole)
        report = json.loads(path.read_text(encoding="utf-8"))
        return {place: _outcome(report, place) for place in places}


def _outcome(report: dict[str, Any], place: Place) -> Outcome:
    for row in report["results"]:
        if row["case"] == place.slug and row["metric"] == "marker" and row["base"] and row["head"]:
            return Outcome((row["base"]["center"], row["head"]["center"]))
    ours = (one for one in report["failures"] if place.slug in one["case"])
    return Outcome(None, "\n".join(f"{one['kind']}: {one['message']}" for one in ours))
