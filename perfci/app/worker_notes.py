"""Pure: what workers met, as notes of a report: disturbed bursts, and their own warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from perfci.model.worker import WorkerOutput
from perfci.units import counted

_MOST_CASES = 3
_MOST_NOTES = 20
_LONGEST = 300
_PLACES = ("on head", "on both sides", "on base")
"""In this order: what head alone is warned of is new."""


def worker_notes(outputs: Sequence[WorkerOutput]) -> tuple[str, ...]:
    """Return what a report says of its workers: what disturbed them, and what they warn of."""
    return (*excluded_notes(outputs), *warning_notes(outputs))


def excluded_notes(outputs: Sequence[WorkerOutput]) -> tuple[str, ...]:
    """Return how many bursts were excluded, and of how many workers most would have been."""
    notes = []
    if count := sum(output.bursts_set_aside for output in outputs):
        said = f"{counted(count, 'burst')} {'was' if count == 1 else 'were'} excluded"
        reason = _commonest((output.disturbance, output.bursts_set_aside) for output in outputs)
        notes.append(f"{said}, most often because of this: {reason}.")
    if kept := [output for output in outputs if output.bursts_disturbed]:
        reason = _commonest((output.disturbance, output.bursts_disturbed) for output in kept)
        notes.append(
            f"Most bursts of {counted(len(kept), 'worker')} were disturbed but kept, most often "
            f"because of this: {reason}. Their numbers are those of a busy or throttled machine."
        )
    return tuple(notes)


def _commonest(reasons: Iterable[tuple[str, int]]) -> str:
    counts: Counter[str] = Counter()
    for reason, count in reasons:
        counts[reason] += count
    return counts.most_common(1)[0][0]


def warning_notes(outputs: Sequence[WorkerOutput]) -> tuple[str, ...]:
    """Return each warning once, with its cases, and the side where two were measured.

    The benchmark shares the worker's process: a warning may be its own, of any length and number.
    """
    sides = {output.side for output in outputs}
    warned: dict[tuple[str, str], set[str]] = {}
    for output in outputs:
        for warning in output.warnings:
            warned.setdefault((warning[:_LONGEST], output.case), set()).add(output.side)
    cases_of: dict[tuple[int, str], list[str]] = {}
    for (warning, case), on in warned.items():
        place = 1 if len(on) > 1 else 0 if "head" in on else 2
        cases_of.setdefault((place, warning), []).append(case)
    ranked = sorted(cases_of.items(), key=lambda one: one[0][0])
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
