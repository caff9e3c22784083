"""Releases on a timeline: a tag stands at the first run that has it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from perfci.trend.timeline.series import Timeline


def release_runs(
    tags: Mapping[str, tuple[str, ...]], order: Sequence[str], timelines: Mapping[str, Timeline]
) -> dict[str, tuple[str, ...]]:
    """Return the measured commits that are the first with releases, and their names.

    ``tags`` maps commits to names, ``order`` holds the branch's commits, the oldest first. A
    tagged commit is seldom the one that a nightly run measures: the next measured one is told. Of
    the tags older than all runs the newest is told, at the first run, which has it: the others
    were outdated by then. A tag that isn't on the branch, or is newer than all runs, is left out.
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
            told = names.setdefault(order[measured[bisect_left(measured, rank)]], [])
            if name not in told:
                told.append(name)
    return {sha: tuple(told) for sha, told in names.items()}
