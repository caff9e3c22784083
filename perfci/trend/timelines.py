"""A loaded history as timelines: runs ordered, aliases applied, bad values left out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from perfci.model.run import RunHeader
from perfci.stats.t_tests import LARGEST
from perfci.trend import LoadedHistory, LoadedSeries, Series, SeriesKey, Timeline, benchmark_of
from perfci.units import counted, first_of, in_utc, unit_factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST_CHAIN = 100
"""Most aliases that are followed one after the other. Aliases in a circle would have no end."""


@dataclass(frozen=True, slots=True)
class ArrangedHistory:
    """Timelines by environment, series sorted by key, and notes on what was left out and why."""

    timelines: Mapping[str, Timeline]
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()


def arrange(
    loaded: LoadedHistory,
    *,
    order: Sequence[str] = (),
    branch: str = "",
    aliases: Mapping[str, str] | None = None,
) -> ArrangedHistory:
    """Put a loaded history in order.

    ``order`` holds the branch's commits, the oldest first. It is empty if no repository can be
    asked. ``aliases`` map an old benchmark name or case id to its new one. If a run has values
    under both names, those under the new name count. Values in an older unit of a metric are
    converted to its newest unit, or left out.
    """
    import numpy as np

    ranks = {sha: place for place, sha in enumerate(order)}
    members: dict[str, list[int]] = {environment: [] for environment in loaded.environments}
    for index, run in enumerate(loaded.runs):
        members.setdefault(run.environment, []).append(index)
    rows = np.full(len(loaded.runs), -1, dtype=np.int32)
    timelines = {}
    for environment, indices in members.items():
        runs = [
            replace(run, committed_at=in_utc(run.committed_at), measured_at=in_utc(run.measured_at))
            for run in (loaded.runs[index].header for index in indices)
        ]
        kept, vanished = order_runs(runs, ranks, branch)
        rows[[indices[place] for place in kept]] = np.arange(len(kept))
        timelines[environment] = Timeline(
            environment=environment,
            runs=tuple(runs[place] for place in kept),
            facts=loaded.environments.get(environment, {}),
            vanished=vanished,
        )
    given = aliases or {}
    merged: dict[SeriesKey, list[LoadedSeries]] = {}
    for part in loaded.series:
        name = current_name(part.key.case, given)
        merged.setdefault(part.key._replace(case=name), []).append(part)
    series, notes = _all_series(merged, rows, loaded)
    notes += _alias_notes({part.key.case for part in loaded.series}, given)
    notes += [
        f"{timeline.environment}: {counted(len(timeline.vanished), 'commit')} no longer on the "
        "branch (a force-push?): the runs are kept but not shown."
        for timeline in timelines.values()
        if timeline.vanished
    ]
    notes += _elsewhere_notes(loaded, rows, branch)
    return ArrangedHistory(timelines, tuple(series), tuple(notes))


def current_name(case: str, aliases: Mapping[str, str]) -> str:
    """Return the case's newest name. Aliases may name the case or its benchmark, and be chained."""
    for _ in range(_LONGEST_CHAIN if aliases else 0):
        benchmark, bracket, axes = case.partition("[")
        if case in aliases:
            renamed = aliases[case]
        elif benchmark in aliases:
            renamed = aliases[benchmark] + bracket + axes
        else:
            return case
        case = renamed
    return case


def _alias_notes(cases: Collection[str], aliases: Mapping[str, str]) -> list[str]:
    """Return notes on aliases of names without any run: a mistyped name would do nothing."""
    names = {*cases, *(case.partition("[")[0] for case in cases)}
    notes = []
    for old, new in sorted(aliases.items()) if names else ():
        absent = " nor ".join(f"`{name}`" for name in (old, new) if name not in names)
        if absent:
            notes.append(f"The alias of `{old}` for `{new}`: no run has a case named {absent}.")
    return notes


def _all_series(
    merged: Mapping[SeriesKey, list[LoadedSeries]], rows: NDArray[Any], loaded: LoadedHistory
) -> tuple[list[Series], list[str]]:
    """Return the series that have any value, sorted by key, and a note by benchmark and metric."""
    series: list[Series] = []
    notes: dict[tuple[str, str, str], str] = {}
    for key in sorted(merged):
        said: list[str] = []
        joined = _series(key, merged[key], rows, loaded, said)
        if joined is not None:
            series.append(joined)
        name = f"{benchmark_of(key.case)} {key.metric}"
        for note in said[:1]:
            notes.setdefault((key.environment, name, note), f"{key.environment}: {name}: {note}")
    return series, list(notes.values())


def _series(
    key: SeriesKey,
    parts: list[LoadedSeries],
    rows: NDArray[Any],
    loaded: LoadedHistory,
    notes: list[str],
) -> Series | None:
    """Join the parts of one series into one. Return None if no value is left.

    Values too large or too small to compute with are left out, so that one bad run doesn't cost
    the whole series, nor one bad benchmark the whole report.
    """
    import numpy as np

    if len({part.unit for part in parts}) > 1:
        parts = _in_one_unit(parts, rows, notes)
    # The newest name comes last, and so wins in a run that has both names: of the points of one run
    # the last is taken below.
    parts = sorted(parts, key=lambda part: part.key.case == key.case)
    at = np.concatenate([rows[part.runs] for part in parts])
    values = np.concatenate([np.asarray(part.values, dtype=np.float64) for part in parts])
    versions: dict[str | None, int] = {None: -1}
    source_ids = np.concatenate([_source_ids(part, loaded, versions) for part in parts])
    good = (at >= 0) & np.isfinite(values)
    sizes = np.abs(values)
    extreme = good & ((sizes > LARGEST) | ((sizes > 0.0) & (sizes < 1.0 / LARGEST)))
    if extreme.any():
        notes.append(f"values beyond {LARGEST:g} or its inverse are left out.")
        good &= ~extreme
    if not good.any():
        return None
    at, values, source_ids = at[good], values[good], source_ids[good]
    by_row = np.argsort(at, kind="stable")
    at, values, source_ids = at[by_row], values[by_row], source_ids[by_row]
    last = np.append(at[1:] != at[:-1], True)
    return Series(
        key=key,
        unit=parts[-1].unit,
        direction=parts[-1].direction,
        rows=at[last].astype(np.int32),
        values=values[last],
        source_changes=_source_changes(source_ids[last]),
    )


def _in_one_unit(
    parts: Sequence[LoadedSeries], rows: NDArray[Any], notes: list[str]
) -> list[LoadedSeries]:
    """Return the parts in the newest part's unit. Parts that can't be converted are left out."""
    newest = max(parts, key=lambda part: int(rows[part.runs].max(initial=-1)))
    kept: list[LoadedSeries] = []
    units: dict[str, list[str]] = {"converted": [], "left out": []}
    for part in parts:
        factor = unit_factor(part.unit, newest.unit)
        if factor is not None:
            kept.append(replace(part, unit=newest.unit, values=part.values * factor))
        if part.unit != newest.unit:
            units["left out" if factor is None else "converted"].append(part.unit)
    notes += [
        f"values in {', '.join(sorted(old))} are {done}; it is now in {newest.unit}."
        for done, old in units.items()
        if old
    ]
    return kept


def _source_ids(
    part: LoadedSeries, loaded: LoadedHistory, versions: dict[str | None, int]
) -> NDArray[Any]:
    """Return the version of the benchmark's source in each run. ``versions`` numbers the hashes."""
    import numpy as np

    hashes = (by_case.get(part.key.case) for by_case in loaded.sources)
    numbers = np.array([versions.setdefault(each, len(versions) - 1) for each in hashes])
    of_runs: NDArray[Any] = numbers[loaded.source_of_run[part.runs]]
    return of_runs


def _source_changes(source_ids: NDArray[Any]) -> tuple[int, ...]:
    """Return the indices at which the benchmark's source differs from the last known source.

    An id of -1 means unknown.
    """
    import numpy as np

    known = np.flatnonzero(source_ids >= 0)
    moved = np.flatnonzero(np.diff(source_ids[known])) + 1
    return tuple(int(index) for index in known[moved])


def _elsewhere_notes(loaded: LoadedHistory, rows: NDArray[Any], branch: str) -> list[str]:
    """Return a note on the runs that are left out because they are of other branches."""
    left_out = (run.header for run, row in zip(loaded.runs, rows, strict=True) if row < 0)
    runs = Counter(run.branch for run in left_out if branch and run.branch not in {"", branch})
    names = [f"{name} ({count:,})" for name, count in runs.most_common()]
    note = (
        f"{counted(runs.total(), 'run')} of other branches left out: {first_of(names, 5)}. "
        "`--branch NAME` shows another branch."
    )
    return [note] if runs else []


def order_runs(
    runs: Sequence[RunHeader], ranks: Mapping[str, int], branch: str
) -> tuple[list[int], tuple[str, ...]]:
    """Return the indices of the runs to show, the oldest commit first, and the shas that vanished.

    Runs of one commit are in the order of measuring. ``ranks`` has each commit's position on the
    branch. It is empty if no repository could be asked. Then the recorded positions decide, or, if
    any run has no position, the commits' dates. So a clock that jumps moves no run that has a
    commit. A run without a commit comes after the last commit before its time. With ``branch``,
    runs recorded for another branch are left out.
    """
    here = [
        at
        for at, run in enumerate(runs)
        if run.sha in ranks or not branch or run.branch in {"", branch}
    ]
    times = [run.committed_at or run.measured_at for run in runs]
    if not ranks:
        positions = {at: runs[at].position for at in here}
        by_position = None not in positions.values()
        return sorted(
            here,
            key=lambda at: (
                (positions[at] or 0) if by_position else times[at],
                runs[at].measured_at,
            ),
        ), ()
    placed = [at for at in here if runs[at].sha in ranks]
    placed.sort(key=lambda at: (ranks[runs[at].sha], runs[at].measured_at))
    reached = list(accumulate((times[at] for at in placed), max))
    keyed = [(float(place), times[at], at) for place, at in enumerate(placed)]
    keyed += [
        (bisect_right(reached, times[at]) - 0.5, times[at], at) for at in here if not runs[at].sha
    ]
    vanished = dict.fromkeys(runs[at].sha for at in here if runs[at].sha not in {"", *ranks})
    return [at for *_, at in sorted(keyed)], tuple(vanished)


def release_runs(
    tags: Mapping[str, tuple[str, ...]], order: Sequence[str], timelines: Mapping[str, Timeline]
) -> dict[str, tuple[str, ...]]:
    """Return for each release the first measured commit that contains it: names by commit.

    ``tags`` maps commits to names. ``order`` has the branch's commits, the oldest first. A nightly
    run seldom measures the tagged commit itself, so a release is shown at the next measured commit.
    Of the tags older than all runs, only the newest is shown, at the first run: the older ones were
    outdated by then. A tag that isn't on the branch, or is newer than all runs, is left out.
    """
    ranks = {sha: place for place, sha in enumerate(order)}
    names: dict[str, list[str]] = {}
    for timeline in timelines.values():
        measured = sorted({ranks[run.sha] for run in timeline.runs if run.sha in ranks})
        if not measured:
            continue
        placed = [(ranks[sha], name) for sha in tags if sha in ranks for name in tags[sha]]
        before = max((rank for rank, _ in placed if rank < measured[0]), default=0)
        for rank, name in placed:
            if rank < before or rank > measured[-1]:
                continue
            of_run = names.setdefault(order[measured[bisect_left(measured, rank)]], [])
            if name not in of_run:
                of_run.append(name)
    return {sha: tuple(of_run) for sha, of_run in names.items()}
