"""How many of the alerts that a tool ever raises are still in its last report.

    PYTHONPATH=. python benchmarks/trend/stability.py
    PYTHONPATH=. peers/bin/python benchmarks/trend/stability.py --tool apache-otava --tool asv

Each series is given run by run, as a project sees it: a report on every prefix. perfci is given
what its earlier reports named, as its history keeps it; the peers keep nothing. An alert is a place
that no earlier report of the series had within ``NEAR`` runs. It is kept where the last report has
it.
Prints a Markdown table: a row a set, with F1 of the last reports at a margin of 5 points, and the
median delay of the alerts for true steps. ``--asv FOLDER=NAME`` adds a sample of the series in a
folder of asv's results.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.trend.f1 import score
from benchmarks.trend.labelled import Labelled, labelled_real, unlabelled_real
from benchmarks.trend.synthetic import changed_series
from perfci.trend import Change

SEED = 20261128
NEAR = 5
"""Runs: a place so near to an earlier report's is the same alert."""
FIRST = 20
"""Runs of the shortest prefix. What that report names counts as alerts as well."""
MARGIN = 5
LONGEST = 400
"""Of a longer series the last so many runs are given: a report on each of 5,000 takes minutes."""
ASV_SERIES = 10

Place = tuple[int, int]
"""The first new point of a step, twice, or a ramp's first and last."""
Report = Callable[[np.ndarray, object], tuple[list[Place], object]]
"""From a prefix and what the tool keeps to the places that it names, and what it keeps now."""


@dataclass
class Stability:
    """Counts over a set."""

    raised: int = 0
    kept: int = 0
    delays: list[int] = field(default_factory=list)
    last: list[list[int]] = field(default_factory=list)
    """The middles of the places that the last reports have."""


def main() -> None:
    """Give every set to each tool, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", action="append", help="the tools whose names begin so")
    parser.add_argument("--only", default="", help="the sets whose names begin so")
    parser.add_argument("--each", type=int, default=2, help="series of each shape and noise")
    parser.add_argument("--asv", action="append", default=[], metavar="FOLDER=NAME")
    options = parser.parse_args()
    sets = _sets(options.each, options.asv)
    chosen = tuple(options.tool or ["perfci"])
    tools = {name: report for name, report in _tools(chosen) if name.startswith(chosen)}
    print("| | " + " | ".join(tools) + " |")
    print("|---" * (len(tools) + 1) + "|")
    for name, some in sets.items():
        if name.startswith(options.only):
            cells = [_cell(some, follow(some, report)) for report in tools.values()]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def follow(some: Sequence[Labelled], report: Report) -> Stability:
    """Give each series run by run, and count what becomes of the alerts."""
    counts = Stability()
    for series in some:
        alerts: list[tuple[Place, int]] = []  # with the run at which it was raised
        places: list[Place] = []
        kept: object = None
        for size in range(min(FIRST, len(series.values)), len(series.values) + 1):
            places, kept = report(series.values[:size], kept)
            alerts += [
                (place, size - 1)
                for place in places
                if not any(_near(place, other) for other, _ in alerts)
            ]
        counts.raised += len(alerts)
        counts.kept += sum(any(_near(place, last) for last in places) for place, _ in alerts)
        counts.last.append([(begin + end) // 2 for begin, end in places])
        for truth in series.truths:
            step = truth.begin, truth.end
            seen = [at - truth.begin for place, at in alerts if _near(place, step)]
            if truth.begin == truth.end and truth.begin >= FIRST and seen:
                counts.delays.append(max(0, min(seen)))
    return counts


def _near(place: Place, other: Place) -> bool:
    return place[0] - NEAR <= other[1] and other[0] - NEAR <= place[1]


def _tools(chosen: tuple[str, ...]) -> Iterator[tuple[str, Report]]:
    yield "perfci", perfci
    yield "perfci without its history", lambda values, _: perfci(values, None)
    if any(not name.startswith("perfci") for name in chosen):
        from benchmarks.trend.peers import PEERS

        for name, by_setting in PEERS.items():
            yield name, _stateless(by_setting["defaults" if "defaults" in by_setting else "× 8"])


def _cell(some: Sequence[Labelled], counts: Stability) -> str:
    share = f"{counts.kept} of {counts.raised}"
    share += f" ({counts.kept / counts.raised:.0%})" if counts.raised else ""
    if not any(series.truths for series in some):
        return share
    f1 = score(zip(some, counts.last, strict=True), MARGIN).f1
    delay = f"{median(counts.delays):g}" if counts.delays else "-"
    return f"{share}; {f1:.2f}; {delay}"


def _stateless(detect: Callable[[np.ndarray], Sequence[int]]) -> Report:
    def report(values: np.ndarray, _: object) -> tuple[list[Place], object]:
        found = detect(values) if np.ptp(values) else []
        return [(int(place), int(place)) for place in found], None

    return report


def perfci(values: np.ndarray, kept: object) -> tuple[list[Place], object]:
    """Report as ``perfci trend`` does, with the known changes of the report before."""
    from benchmarks.trend.ours import _night
    from perfci.trend import KnownChange, Series, SeriesKey, Timeline
    from perfci.trend.changes import analyse

    key = SeriesKey("machine", "case", "latency")
    size = len(values)
    series = Series(key, "s", "lower", np.arange(size, dtype=np.int32), values)
    timeline = Timeline("machine", tuple(map(_night, range(size))))
    now = "2026-01-01T00:00:00Z"
    known = dict(kept) if isinstance(kept, dict) else {}
    analysed = analyse([series], {"machine": timeline}, known=tuple(known.values()), now=now)
    for change in analysed.changes:
        known[change.id] = KnownChange(change.id, key, *change.names, change.worse, now)
    return sorted(map(_span, analysed.changes)), known


def _span(change: Change) -> Place:
    return change.after if change.kind == "step" else change.before + 1, change.after


def _sets(each: int, folders: Sequence[str]) -> dict[str, list[Labelled]]:
    sets: dict[str, list[Labelled]] = {}
    for series in (*changed_series(SEED, each), *labelled_real(), *unlabelled_real()):
        sets.setdefault(series.group, []).append(_shortened(series))
    for text in folders:
        folder, _, name = text.partition("=")
        sets[name or folder] = list(map(_shortened, _asv_series(Path(folder), name)))
    return sets


def _shortened(series: Labelled) -> Labelled:
    cut = max(0, len(series.values) - LONGEST)
    truths = tuple(
        type(truth)(truth.begin - cut, truth.end - cut)
        for truth in series.truths
        if truth.begin >= cut
    )
    return Labelled(series.group, series.shape, series.name, series.values[cut:], truths)


def _asv_series(folder: Path, group: str) -> Iterator[Labelled]:
    """Yield a sample of the longest machine's series, by the commits' dates."""
    machine = max(
        (entry for entry in folder.iterdir() if entry.is_dir()),
        key=lambda entry: len(list(entry.iterdir())),
    )
    values: dict[str, list[tuple[float, float]]] = {}
    for path in machine.glob("*.json"):
        if path.name == "machine.json":
            continue
        result = json.loads(path.read_text())
        for name, stored in result.get("results", {}).items():
            numbers = stored.get("result") if isinstance(stored, dict) else stored
            while isinstance(numbers, list) and numbers and isinstance(numbers[0], list):
                numbers = numbers[0]
            number = numbers[0] if isinstance(numbers, list) and numbers else numbers
            if isinstance(number, int | float) and number > 0:
                values.setdefault(name, []).append((result.get("date", 0), float(number)))
    long = [name for name in sorted(values) if len(values[name]) >= 5 * FIRST]
    chosen = np.random.default_rng(SEED).permutation(len(long))[:ASV_SERIES]
    for index in sorted(chosen.tolist()):
        ordered = np.array([value for _, value in sorted(values[long[index]])])
        yield Labelled(group, "real", long[index], ordered, ())


if __name__ == "__main__":
    main()
