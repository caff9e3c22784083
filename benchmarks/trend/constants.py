"""How much each constant of the search decides: F1 with the constant 30 % smaller, and larger.

    PYTHONPATH=. python benchmarks/trend/constants.py

The sets are those of ``scores.py``. Prints a Markdown table of F1 at a margin of 5 points, with a
row per constant and the smaller value's F1 first.
"""

from __future__ import annotations

import argparse
from types import ModuleType
from unittest.mock import patch

from benchmarks.trend.f1 import score
from benchmarks.trend.labelled import Labelled, labelled_real
from benchmarks.trend.ours import find
from benchmarks.trend.synthetic import changed_series
from perfci.trend import TrendSettings, change_points, noise, ramps

SEED = 20261121
"""That of ``scores.py``."""
EACH = 10
SHARE = 0.3
MARGIN = 5
CONSTANTS: dict[ModuleType, tuple[str, ...]] = {
    noise: (
        *("WINDOW", "ODD", "LARGEST_RHO", "SHIFT", "_TRIM", "LARGEST_BLOCK", "HALVED_BLOCK"),
        *(
            "BLOCKS",
            "SHORT_SERIES_BLOCK",
            "SHORT_SERIES_BLOCKS",
            "GROWTH",
            "FEWEST_BLOCKS",
            "FEWEST_DF",
            "LEAST_LEFT",
            "PRIOR",
            "LOCAL_RUNS",
        ),
        *("LOUDER", "SEARCHES", "FEWEST_SEARCHES", "DF_SHARE", "DF_BASE"),
    ),
    change_points: (
        *("INTERVAL_GROWTH", "WEAKEST_CANDIDATE", "STRONGEST_CANDIDATE"),
        *("LENIENT", "FRESH", "TURNING", "EXCURSION"),
    ),
    ramps: ("SHORTEST_RAMP", "REACH", "MOST_STEPS"),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=EACH, help="series of each shape and noise")
    options = parser.parse_args()
    sets: dict[str, list[Labelled]] = {}
    for series in (*changed_series(SEED, options.each), *labelled_real()):
        sets.setdefault(series.group, []).append(series)
    print("| constant | value | " + " | ".join(sets) + " |")
    print("|---" * (len(sets) + 2) + "|")
    cells = [f"{f1:.2f}" for f1 in _f1s(sets)]
    print("| none is changed | | " + " | ".join(cells) + " |", flush=True)
    for module, names in CONSTANTS.items():
        for name in names:
            value = getattr(module, name)
            smaller, larger = (
                _with(sets, module, name, _changed(name, value, sign)) for sign in (-1, 1)
            )
            cells = [f"{low:.2f}; {high:.2f}" for low, high in zip(smaller, larger, strict=True)]
            print(f"| `{name}` | {value:g} | " + " | ".join(cells) + " |", flush=True)


def _changed(name: str, value: float, sign: int) -> float:
    """Return the constant ``SHARE`` smaller or larger. Counts stay whole; a window stays odd."""
    changed = value * (1 + sign * SHARE)
    if name == "LARGEST_RHO":
        return min(changed, 0.99)
    if name == "WINDOW":
        return 2 * round((changed - 1) / 2) + 1
    return round(changed) if isinstance(value, int) else changed


def _with(
    sets: dict[str, list[Labelled]], module: ModuleType, name: str, value: float
) -> list[float]:
    with patch.object(module, name, value):
        change_points._layers.cache_clear()
        f1s = _f1s(sets)
    change_points._layers.cache_clear()
    return f1s


def _f1s(sets: dict[str, list[Labelled]]) -> list[float]:
    return [
        score(zip(some, find(some, TrendSettings()), strict=True), MARGIN).f1
        for some in sets.values()
    ]


if __name__ == "__main__":
    main()
