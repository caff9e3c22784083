"""Whether changes of one event are grouped and classed rightly, in generated histories.

    PYTHONPATH=. python benchmarks/trend/events.py

A history has 200 series on each of two runners of one kind, a year of nights, and events: code (on
both runners, in some of the series, each by its own size), the environment (on one runner, in most
series), and excursions (code that is taken back after 8 to 25 nights). The whole analysis runs on
it. Of each change that it finds near a true event: whether it is in the named event that holds most
of that true event and little else; of each true event: whether that named one is of its kind.
Prints a Markdown table, and keeps it in ``results/events.json``.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.trend.synthetic import SIGMA, ar1
from perfci.model.run import RunHeader
from perfci.trend import Change, Series, SeriesKey, Timeline, TrendEvent
from perfci.trend.changes import analyse
from perfci.trend.events import group_events

SEED = 23
HISTORIES = 6
NIGHTS = 365
SERIES = 200
RUNNERS = ("runner-1", "runner-2")
NEAR = 3
"""Nights: a found change of a series of an event so near to it is of that event."""
RESULTS = Path(__file__).parent / "results" / "events.json"


@dataclass(frozen=True)
class Truth:
    """One event: its series on its runners move at ``at``, and back at ``end`` where it is >= 0."""

    kind: str
    runners: tuple[str, ...]
    at: int
    end: int
    series: frozenset[int]


def main() -> None:
    """Score every kind of noise, keep the counts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--histories", type=int, default=HISTORIES, help="for each noise")
    options = parser.parse_args()
    lines = []
    for rho in (0.0, 0.3, 0.6):
        counts: Counter[str] = Counter()
        for number in range(options.histories):
            counts += score(np.random.default_rng([options.seed, number, int(10 * rho)]), rho)
        lines.append({"rho": rho, **dict(sorted(counts.items()))})
    if options.seed == SEED and options.histories == HISTORIES:
        RESULTS.write_text(json.dumps({"seed": options.seed, "lines": lines}, indent=1) + "\n")
    print(table(lines))


def score(rng: np.random.Generator, rho: float) -> Counter[str]:
    """Generate one history and count what is right in what is made of it."""
    truths = _truths(rng)
    timelines = {one: _timeline(one) for one in RUNNERS}
    series = [one for runner in RUNNERS for one in _all_series(rng, runner, truths, rho)]
    changes = analyse(series, timelines, now="2026-01-01T00:00:00Z").changes
    return compare(truths, group_events(changes, series, timelines))


def compare(truths: Sequence[Truth], events: Sequence[TrendEvent]) -> Counter[str]:
    """Count changes and events, and those that are right."""
    counts: Counter[str] = Counter()
    where: dict[tuple[SeriesKey, int], int] = {}
    for number, event in enumerate(events):
        where |= {(one.series, one.after): number for one in (*event.changes, *event.back)}
        counts["events named"] += 1
    members: dict[tuple[int, str], list[int]] = {}
    of_event: dict[int, Counter[tuple[int, str]]] = {}
    for event in events:
        for change in (*event.changes, *event.back):
            number = where[change.series, change.after]
            label = _label(change, truths)
            if label is None:
                counts["changes of no event"] += 1
                continue
            members.setdefault(label, []).append(number)
            of_event.setdefault(number, Counter())[label] += 1
    for label, numbers in members.items():
        main_one, together = Counter(numbers).most_common(1)[0]
        kind = truths[label[0]].kind
        counts[f"{kind}: changes"] += len(numbers)
        if of_event[main_one].most_common(1)[0][0] == label:
            counts[f"{kind}: changes together"] += together
        counts[f"{kind}: events"] += 1
        counts[f"{kind}: events classed"] += events[main_one].kind == kind
    return counts


def _label(change: Change, truths: Sequence[Truth]) -> tuple[int, str] | None:
    number, runner = int(change.series.case.removeprefix("case")), change.series.environment
    near = [
        (abs(place - change.after), index)
        for index, truth in enumerate(truths)
        if number in truth.series and runner in truth.runners
        for place in (truth.at, truth.end)
        if place >= 0 and change.within[0] - NEAR < place <= change.within[1] + NEAR
    ]
    return (min(near)[1], runner) if near else None


def _truths(rng: np.random.Generator) -> tuple[Truth, ...]:
    """Ten events; their places are at least four nights apart, as those of two causes may be."""
    kinds = ["code"] * 4 + ["environment"] * 3 + ["excursion"] * 3
    rng.shuffle(kinds)
    gaps = rng.multinomial(NIGHTS - 30 - 230, np.ones(len(kinds) + 1) / 11)
    made, at = [], 15
    for kind, gap in zip(kinds, gaps, strict=False):
        at += int(gap)
        length = int(rng.integers(8, 26)) if kind == "excursion" else -1
        runners = (str(rng.choice(RUNNERS)),) if kind == "environment" else RUNNERS
        count = rng.integers(140, 196) if kind == "environment" else rng.integers(3, 80)
        some = frozenset(rng.choice(SERIES, int(count), replace=False).tolist())
        made.append(Truth(kind, runners, at, at + length if length > 0 else -1, some))
        at += (max(0, length)) + int(rng.integers(4, 14))
    return tuple(made)


def _timeline(runner: str) -> Timeline:
    start = np.datetime64("2025-01-01")
    days = [f"{start + day}T02:00:00Z" for day in range(NIGHTS)]
    runs = (
        RunHeader(f"{runner}-{row}", "nightly", f"{row:040x}", "", "main", day, day, row, runner)
        for row, day in enumerate(days)
    )
    return Timeline(runner, tuple(runs), {"device_name": "NVIDIA H200"})


def _all_series(
    rng: np.random.Generator, runner: str, truths: Sequence[Truth], rho: float
) -> list[Series]:
    logs = np.array([SIGMA * ar1(rng, rho, NIGHTS) for _ in range(SERIES)])
    for index, truth in enumerate(truths):
        sizes = np.random.default_rng([SEED, index, truth.at]).uniform(0.02, 0.12, SERIES)
        sizes *= np.random.default_rng([SEED, truth.at]).choice([-1, 1])
        for number in truth.series if runner in truth.runners else ():
            logs[number, truth.at : truth.end if truth.end > 0 else None] += sizes[number]
    rows = np.arange(NIGHTS, dtype=np.int32)
    return [
        Series(SeriesKey(runner, f"case{number}", "latency_p50"), "s", "lower", rows, np.exp(one))
        for number, one in enumerate(logs)
    ]


def table(lines: Sequence[dict]) -> str:
    """Return the counts as Markdown."""
    kinds = ("code", "environment", "excursion")
    head = [
        "ρ",
        *(f"{kind}: changes together; events classed" for kind in kinds),
        "events, true and named",
    ]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for line in lines:
        cells = [
            f"{_share(line, f'{kind}: changes together', f'{kind}: changes')}; "
            f"{_share(line, f'{kind}: events classed', f'{kind}: events')}"
            for kind in kinds
        ]
        true = sum(line[f"{kind}: events"] for kind in kinds)
        rows.append(f"| {line['rho']} | {' | '.join(cells)} | {true}, {line['events named']} |")
    return "\n".join(rows)


def _share(line: dict, part: str, whole: str) -> str:
    return f"{line.get(part, 0) / line[whole]:.1%} of {line[whole]:,}"


if __name__ == "__main__":
    main()
