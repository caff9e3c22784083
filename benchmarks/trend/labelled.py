"""Series whose changes are known: what they are, and the real ones from tests/data/series."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SERIES = Path(__file__).resolve().parents[2] / "tests" / "data" / "series"


@dataclass(frozen=True, slots=True)
class Truth:
    """A known change: a step's first new point (begin == end), or a ramp's first and last point."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Labelled:
    """A series, its set and shape, and every change in it."""

    group: str
    shape: str
    name: str
    values: np.ndarray
    truths: tuple[Truth, ...]


def labelled_real() -> list[Labelled]:
    """The series of mozilla_talos and otava with their labels."""
    labels = json.loads((SERIES / "labels.json").read_text())
    found = []
    for name, rows in labels.items():
        group = name.partition("/")[0]
        truths = tuple(Truth(row, row) for row in rows)
        found.append(Labelled(group, "real", name, _values(SERIES / name), truths))
    return found


def unlabelled_real() -> list[Labelled]:
    """The sunpy series: shared runners, no labels."""
    paths = sorted((SERIES / "sunpy_asv_ghactions").glob("*.csv"))
    return [Labelled("sunpy", "real", path.stem, _values(path), ()) for path in paths]


def _values(path: Path) -> np.ndarray:
    with path.open(newline="") as file:
        return np.array([float(row["value"]) for row in csv.DictReader(file)])
