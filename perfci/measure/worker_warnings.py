"""Pure: what workers warn of, as notes: code that runs in eager, an output that went unchecked."""

from __future__ import annotations

from collections.abc import Sequence

from perfci.record.worker import WorkerOutput
from perfci.units import counted

_MOST_CASES = 3
_MOST_NOTES = 20
_LONGEST = 300
_PLACES = ("on head", "on both sides", "on base")
"""In this order: what head alone is warned of is new."""


def warning_notes(outputs: Sequence[WorkerOutput]) -> tuple[str, ...]:
    """Return each warning once, with its cases, and the side where two were measured.

    The benchmark shares the worker's process: a warning may be its own, of any length and number.
    """
    sides = {output.side for output in outputs}
    warned: dict[tuple[str, str], set[str]] = {}
    for output in outputs:
        for warning in output.warnings:
            warned.setdefault((warning[:_LONGEST], output.case), set()).add(output.side)
    found: dict[tuple[int, str], list[str]] = {}
    for (warning, case), on in warned.items():
        place = 1 if len(on) > 1 else 0 if "head" in on else 2
        found.setdefault((place, warning), []).append(case)
    ranked = sorted(found.items(), key=lambda one: one[0][0])
    notes = [
        f"{_named(cases)}{f', {_PLACES[place]}' if len(sides) > 1 else ''}: {warning}."
        for (place, warning), cases in ranked[:_MOST_NOTES]
    ]
    if len(ranked) > _MOST_NOTES:
        notes.append(f"Workers gave {counted(len(ranked) - _MOST_NOTES, 'more warning')}.")
    return tuple(notes)


def _named(cases: Sequence[str]) -> str:
    more = len(cases) - _MOST_CASES
    return ", ".join(cases[:_MOST_CASES]) + (f" and {more} more" if more > 0 else "")
