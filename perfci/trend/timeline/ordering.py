"""The order of the runs of one environment: that of their commits, never of a clock alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from perfci.model.history import RunHeader
from perfci.model.instant import day_of, in_utc
from perfci.units import counted


@dataclass(frozen=True, slots=True)
class Ordered:
    """``kept`` are indices into the runs given, oldest commit first; ``vanished`` are shas.

    ``notes`` say of which runs the times can't be trusted.
    """

    kept: tuple[int, ...]
    vanished: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def order_runs(runs: Sequence[RunHeader], *, ranks: Mapping[str, int], branch: str = "") -> Ordered:
    """Order the runs by commit, and those of one commit as they were measured.

    ``ranks`` gives each commit of the branch its place, and is empty where no repository could
    be asked; then the recorded positions decide, or where some run has none, the commits'
    dates: a clock that jumps moves no run that has a commit. A run whose commit's date can't be
    read stands where it was measured, and one that has no time at all, nor a place, is left out.
    Where ``branch`` is given, runs recorded for another branch are left out.
    """
    if not ranks:
        mine = [i for i, run in enumerate(runs) if _belongs(run, branch)]
        return _by_record(runs, mine)
    placed = [i for i, run in enumerate(runs) if run.sha in ranks]
    placed.sort(key=lambda i: (ranks[runs[i].sha], *_measured(runs[i])))
    absent = [i for i, run in enumerate(runs) if run.sha not in ranks]
    nameless = [i for i in absent if not runs[i].sha and _belongs(runs[i], branch)]
    vanished = {runs[i].sha: None for i in absent if runs[i].sha and _belongs(runs[i], branch)}
    return Ordered(
        kept=tuple(_between(runs, placed, [i for i in nameless if _time(runs[i])])),
        vanished=tuple(vanished),
        notes=_left_out(runs, nameless),
    )


def _belongs(run: RunHeader, branch: str) -> bool:
    return not branch or not run.branch or run.branch == branch


def _by_record(runs: Sequence[RunHeader], mine: Sequence[int]) -> Ordered:
    positions = {i: runs[i].position for i in mine}
    if all(position is not None for position in positions.values()):
        placed = sorted(mine, key=lambda i: (positions[i] or 0, *_measured(runs[i])))
        return Ordered(kept=tuple(placed))
    dated = [i for i in mine if _time(runs[i])]
    dated.sort(key=lambda i: (_time(runs[i]), *_measured(runs[i])))
    return Ordered(
        kept=tuple(dated),
        notes=(*_left_out(runs, mine), *_doubtful([runs[i] for i in dated])),
    )


def _time(run: RunHeader) -> str:
    return in_utc(run.committed_at) or in_utc(run.measured_at)


def _measured(run: RunHeader) -> tuple[str, str]:
    """Return what sorts by when a run was measured, down to parts of a second."""
    return in_utc(run.measured_at), run.measured_at


def _left_out(runs: Sequence[RunHeader], mine: Sequence[int]) -> tuple[str, ...]:
    undated = sum(not _time(runs[i]) for i in mine)
    if not undated:
        return ()
    verb = "is" if undated == 1 else "are"
    return (f"{counted(undated, 'run')} {verb} left out: no time of theirs can be read.",)


def _doubtful(runs: Sequence[RunHeader]) -> tuple[str, ...]:
    """Say where the order by the commits' dates, and nothing better, may be wrong."""
    notes = []
    unread = sum(bool(run.committed_at) and not in_utc(run.committed_at) for run in runs)
    if unread:
        notes.append(
            f"The commit's date of {counted(unread, 'run')} can't be read: "
            "where that was measured counts."
        )
    early = sum(_is_early(run) for run in runs)
    if early:
        notes.append(
            f"{counted(early, 'run')} measured a commit of a later day: a clock was wrong, "
            "and without the repository the order may be."
        )
    return tuple(notes)


def _is_early(run: RunHeader) -> bool:
    committed = day_of(in_utc(run.committed_at))
    measured = day_of(in_utc(run.measured_at))
    return committed is not None and measured is not None and committed > measured + 1


def _between(runs: Sequence[RunHeader], placed: list[int], nameless: list[int]) -> list[int]:
    """Put the runs without a commit behind the last commit that is older than they are."""
    times = list(accumulate((_time(runs[i]) for i in placed), max))
    keyed = [(float(place), _time(runs[i]), i) for place, i in enumerate(placed)]
    keyed += [(bisect_right(times, _time(runs[i])) - 0.5, _time(runs[i]), i) for i in nameless]
    return [i for *_, i in sorted(keyed)]


# Commits of which only the beginning of the hash was recorded, as an imported file may have it.

_SHORTEST = 7
"""Digits: what git shortens a hash to at the least, by itself."""


def whole_commits(recorded: Iterable[str], commits: Collection[str]) -> dict[str, str]:
    """Return, by its short form, each of ``commits`` that alone begins as one of ``recorded``."""
    known = set(commits)
    short = {sha for sha in recorded if len(sha) >= _SHORTEST and sha not in known}
    if not short:
        return {}
    ordered = sorted(known)
    found = {}
    for sha in short:
        first = bisect_left(ordered, sha)
        begin_so = [one for one in ordered[first : first + 2] if one.startswith(sha)]
        if len(begin_so) == 1:
            found[sha] = begin_so[0]
    return found
