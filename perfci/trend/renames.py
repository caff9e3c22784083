"""Renamed benchmarks: one ended where another with the same axes and metrics began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from perfci.model.run import RunHeader
from perfci.trend import LoadedHistory, LoadedSeries, Timeline, benchmark_of
from perfci.units import first_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST_GAP = 3
"""Most runs from the old name's last run to the new name's first run."""
_ALIKE = 0.6
"""Names are alike if at least this share of their letters is common to both."""
_ALIKE_RATIO = 3.0
"""Largest ratio of the levels of benchmarks whose names are alike."""
_RATIO = 1.5
"""Largest ratio of the levels of benchmarks whose names aren't alike."""
_RUNS_COMPARED = 14
"""Most runs of a benchmark whose median is its level."""
_MOST_NAMED = 5
"""Most renames that a note names."""


@dataclass(slots=True)
class _Benchmark:
    """One benchmark's runs in an environment: rows from ``first`` to ``last``, and its series."""

    first: int
    last: int
    series: dict[tuple[str, str], LoadedSeries] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.series)


def find_renames(
    loaded: LoadedHistory,
    rows: NDArray[Any],
    timelines: Mapping[str, Timeline],
    aliases: Mapping[str, str],
) -> dict[str, str]:
    """Return the new name of each renamed benchmark, by its old name.

    ``rows`` (n,) are the places of ``loaded.runs`` on their timelines, negative for runs that are
    left out. A benchmark that ``aliases`` name already is left out. So is a pair of benchmarks that
    were measured at the same time in any environment.
    """
    by_environment = _benchmarks(loaded, rows)
    explicit = {benchmark_of(name) for name in (*aliases, *aliases.values())}
    votes: dict[str, set[str]] = {}
    for environment, benchmarks in by_environment.items():
        taken: set[str] = set()
        runs = timelines[environment].runs
        pairs = _pairs(benchmarks, runs, loaded, rows)
        for _, old, new in sorted(pairs, key=lambda pair: (-pair[0], pair[1:])):
            if not {old, new} & (taken | explicit):
                taken |= {old, new}
                votes.setdefault(old, set()).add(new)
    return {
        old: new
        for old, (new, *others) in votes.items()
        if not others and not any(_both(there, old, new) for there in by_environment.values())
    }


def rename_notes(renames: Mapping[str, str]) -> tuple[str, ...]:
    """Return a note on which benchmarks count as renamed, and how to keep them separate."""
    if not renames:
        return ()
    pairs = first_of([f"{old} → {new}" for old, new in sorted(renames.items())], _MOST_NAMED)
    old = min(renames)
    apart = f'`"{old}" = "{old}"` in [tool.perfci.aliases]'
    return (f"Taken as renamed, for one ended where the other began: {pairs}. Else: {apart}.",)


def _benchmarks(loaded: LoadedHistory, rows: NDArray[Any]) -> dict[str, dict[str, _Benchmark]]:
    by_environment: dict[str, dict[str, _Benchmark]] = {}
    runs = at = rows[:0]
    for part in loaded.series:
        if part.runs is not runs:
            runs, at = part.runs, rows[part.runs]
            at = at[at >= 0]
        if not len(at):
            continue
        first, last = int(at.min()), int(at.max())
        there = by_environment.setdefault(part.key.environment, {})
        name = benchmark_of(part.key.case)
        known = there.setdefault(name, _Benchmark(first, last))
        known.first, known.last = min(known.first, first), max(known.last, last)
        known.series[part.key.case[len(name) :], part.key.metric] = part
    return by_environment


def _both(benchmarks: Mapping[str, _Benchmark], old: str, new: str) -> bool:
    """Return whether both were measured at the same time: then they are two benchmarks."""
    return old in benchmarks and new in benchmarks and benchmarks[new].first <= benchmarks[old].last


def _pairs(
    benchmarks: Mapping[str, _Benchmark],
    runs: tuple[RunHeader, ...],
    loaded: LoadedHistory,
    rows: NDArray[Any],
) -> Iterator[tuple[float, str, str]]:
    """Yield (likeness, old name, new name) of benchmarks that may be the same.

    The likeness is that of the names, plus 1 if both have the same source. If names and sources
    differ, the old benchmark has to be the only one with its axes and metrics that ends there, and
    the new benchmark the only one that begins there.
    """
    ended: dict[int, list[str]] = {}
    for name, old in benchmarks.items():
        ended.setdefault(old.last, []).append(name)
    for new_name, new in benchmarks.items():
        alike = [
            name
            for gap in range(1, _LONGEST_GAP + 1)
            for name in ended.get(new.first - gap, ())
            if benchmarks[name].series.keys() == new.series.keys()
            and runs[benchmarks[name].last].sha != runs[new.first].sha
        ]
        begun = (
            sum(
                other.first == new.first and other.series.keys() == new.series.keys()
                for other in benchmarks.values()
            )
            if alike
            else 0
        )
        for old_name in alike:
            old = benchmarks[old_name]
            likeness = SequenceMatcher(None, old_name, new_name).ratio()
            same_file = _same_source(old, new, loaded, rows)
            ratio = _ratio(old, new, rows)
            alone = len(alike) == begun == 1
            if (
                same_file
                or (likeness >= _ALIKE and ratio <= _ALIKE_RATIO)
                or (alone and ratio <= _RATIO)
            ):
                yield likeness + same_file, old_name, new_name


def _same_source(
    old: _Benchmark, new: _Benchmark, loaded: LoadedHistory, rows: NDArray[Any]
) -> bool:
    """Return whether the old name's last run and the new name's first run have the same source."""
    last, first = (
        _sources(part, loaded, rows)[at]
        for part, at in (
            (next(iter(old.series.values())), -1),
            (next(iter(new.series.values())), 0),
        )
    )
    return last == first >= 0


def _sources(part: LoadedSeries, loaded: LoadedHistory, rows: NDArray[Any]) -> list[int]:
    """Return the number of a series' source in each of its runs, in order; -1 is unknown."""
    import numpy as np

    known = loaded.sources.get((part.key.environment, part.key.case))
    order = _in_order(part, rows)
    numbers = np.full(len(order), -1) if known is None else np.asarray(known)[part.runs][order]
    return [int(number) for number in numbers]


def _ratio(old: _Benchmark, new: _Benchmark, rows: NDArray[Any]) -> float:
    """Return the median over the benchmarks' series of larger ÷ smaller level, old and new."""
    import numpy as np

    ratios = []
    for name, part in old.series.items():
        before = np.median(part.values[_in_order(part, rows)][-_RUNS_COMPARED:])
        other = new.series[name]
        after = np.median(other.values[_in_order(other, rows)][:_RUNS_COMPARED])
        if part.unit == other.unit and before > 0.0 and after > 0.0:
            ratios.append(float(max(after / before, before / after)))
    return float(np.median(ratios)) if ratios else 1.0


def _in_order(part: LoadedSeries, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the indices of a series' values whose runs count, the oldest first."""
    import numpy as np

    at = rows[part.runs]
    order = np.argsort(at, kind="stable")
    kept: NDArray[Any] = order[at[order] >= 0]
    return kept
