"""Commits of which only the beginning of the hash was recorded, as an imported file may tell it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable

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
