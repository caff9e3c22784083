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
    """All that was read. ``tool`` is empty where a folder holds files of several.

    ``notes`` tell what the file leaves open and was assumed, such as a time without a zone.
    """

    tool: str
    runs: tuple[RecordedRun, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


def joined(parts: tuple[Foreign, ...]) -> Foreign:
    """Return several as one; equal runs and notes are there once."""
    tools = {part.tool for part in parts if part.tool}
    runs = {run.id: run for part in parts for run in part.runs}
    return Foreign(
        tools.pop() if len(tools) == 1 else "",
        tuple(sorted(runs.values(), key=lambda run: (run.measured_at, run.id))),
        tuple(one for part in parts for one in part.skipped),
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
