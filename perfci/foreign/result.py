"""What reading a foreign file gives: the runs, what was left out, and what was assumed."""

from __future__ import annotations

from dataclasses import dataclass

from perfci.record.history import RecordedRun


@dataclass(frozen=True, slots=True)
class Skipped:
    """A benchmark, or a file of a folder, that gave no points, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """All that a file holds. ``tool`` is empty where it couldn't be read.

    ``notes`` tell what the file leaves open and was assumed, such as a time without a zone.
    """

    tool: str
    runs: tuple[RecordedRun, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
