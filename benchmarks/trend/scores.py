"""How well changes are found, by perfci and by other tools, on series whose changes are known.

    python -m venv peers && peers/bin/pip install -r benchmarks/trend/requirements.txt
    PYTHONPATH=. peers/bin/python benchmarks/trend/scores.py

Prints Markdown tables; everything found is kept in ``results/scores.json``. ``--seed`` and
``--each`` make other synthetic series.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.trend.f1 import score
from benchmarks.trend.labelled import Labelled, labelled_real, unlabelled_real
from benchmarks.trend.ours import SETTINGS, find
from benchmarks.trend.peers import PEERS, Detector
from benchmarks.trend.synthetic import SHAPES, changed_series, quiet_series
from benchmarks.trend.tables import tables

SEED = 20261121
EACH = 10
QUIET = {100: 60, 365: 20, 2000: 4}
MARGINS = (2, 5)
RESULTS = Path(__file__).parent / "results" / "scores.json"

FindAll = Callable[[Sequence[Labelled]], list[list[int]]]


def main() -> None:
    """Score every tool at every setting on every set, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--each", type=int, default=EACH, help="series of each shape and noise")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the tools' own divisions by zero
    sets = _grouped([*changed_series(options.seed, options.each), *labelled_real()])
    quiet = _grouped(quiet_series(options.seed + 1, QUIET, (0.0, 0.3, 0.6)))
    rows = []
    for tool, setting, find_all in _tools():
        row = {"tool": tool, "setting": setting, **_scored(find_all, sets, quiet)}
        f1 = {name: round(scores["5"]["f1"], 3) for name, scores in row["sets"].items()}
        print(tool, setting, f1, file=sys.stderr)
        rows.append(row)
    report = {"seed": options.seed, "each": options.each, "quiet": QUIET, "rows": rows}
    options.json.write_text(json.dumps(report) + "\n")
    print(tables(rows))


def _tools() -> Iterator[tuple[str, str, FindAll]]:
    for setting, settings in SETTINGS.items():
        yield "perfci", setting, partial(find, settings=settings)
    for tool, by_setting in PEERS.items():
        for setting, detector in by_setting.items():
            yield tool, setting, partial(_each, detector=detector)


def _each(some: Sequence[Labelled], detector: Detector) -> list[list[int]]:
    # the peers take one value for no series at all
    return [
        [int(place) for place in detector(one.values)] if np.ptp(one.values) else [] for one in some
    ]


def _scored(
    find_all: FindAll, sets: dict[str, list[Labelled]], quiet: dict[str, list[Labelled]]
) -> dict:
    row: dict = {"sets": {}, "shapes": {}, "quiet": {}, "found": {}}
    took = 0.0
    for name, some in sets.items():
        begin = time.process_time()
        found = find_all(some)
        took += (time.process_time() - begin) * (some[0].group in {"i.i.d.", "AR(0.3)", "AR(0.6)"})
        row["sets"][name] = _by_margin(some, found)
        row["found"].update({one.name: places for one, places in zip(some, found, strict=True)})
        for shape in SHAPES:
            chosen = [i for i, one in enumerate(some) if one.shape == shape]
            if chosen:
                row["shapes"][f"{name} {shape}"] = _by_margin(
                    [some[i] for i in chosen], [found[i] for i in chosen]
                )
    synthetic = sum(len(some) for some in sets.values() if some[0].shape != "real")
    row["ms_per_series"] = 1e3 * took / synthetic
    for name, some in quiet.items():
        found = find_all(some)
        short = [places for one, places in zip(some, found, strict=True) if one.shape == "100"]
        row["quiet"][name] = {
            "false_per_1000_points": 1e3
            * sum(map(len, found))
            / sum(len(one.values) for one in some),
            "short_series_with_one": sum(map(bool, short)) / len(short),
        }
    row["sunpy"] = [len(places) for places in find_all(unlabelled_real())]
    return row


def _by_margin(some: Sequence[Labelled], found: Sequence[Sequence[int]]) -> dict:
    scores = {margin: score(zip(some, found, strict=True), margin) for margin in MARGINS}
    return {str(margin): asdict(one) | {"f1": one.f1} for margin, one in scores.items()}


def _grouped(many: Sequence[Labelled]) -> dict[str, list[Labelled]]:
    groups: dict[str, list[Labelled]] = {}
    for one in many:
        groups.setdefault(one.group, []).append(one)
    return groups


if __name__ == "__main__":
    main()
