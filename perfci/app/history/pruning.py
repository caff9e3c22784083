"""``history prune``: old runs thinned to a commit a week, in each environment and branch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from perfci.history.retention import superfluous

if TYPE_CHECKING:
    from perfci.history.history import OpenHistory


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many of an environment's runs were removed, or would be."""

    environment: str
    runs: int
    removed: int


def prune_history(
    history: OpenHistory, now: datetime, *, keep_days: int, near: int, dry_run: bool
) -> tuple[Pruned, ...]:
    """Remove what is older than ``keep_days`` and further than ``near`` commits from a change."""
    changes = history.known_changes()
    pruned = []
    for key in history.environments():
        runs = history.runs(environment=key)
        gone = superfluous(
            runs,
            [one for one in changes if one.series.environment == key],
            now=now,
            keep_days=keep_days,
            near=near,
        )
        if not dry_run:
            history.remove(gone)
        pruned.append(Pruned(key, len(runs), len(gone)))
    return tuple(pruned)
