"""Pure: what disturbed the bursts of a session's workers, as notes of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from perfci.record.worker import WorkerOutput
from perfci.units import counted


def set_aside_notes(outputs: Sequence[WorkerOutput]) -> tuple[str, ...]:
    """Return how many bursts were left out, and how many workers had too many to leave them out."""
    notes = []
    if count := sum(output.bursts_set_aside for output in outputs):
        said = f"{counted(count, 'burst')} {'was' if count == 1 else 'were'} set aside"
        reason = _commonest((output.disturbance, output.bursts_set_aside) for output in outputs)
        notes.append(f"{said}, most often for this: {reason}.")
    if kept := [output for output in outputs if output.bursts_disturbed]:
        reason = _commonest((output.disturbance, output.bursts_disturbed) for output in kept)
        notes.append(
            f"Most bursts of {counted(len(kept), 'worker')} were disturbed and kept, most often "
            f"for this: {reason}. Their numbers are those of a busy or slowed machine."
        )
    return tuple(notes)


def _commonest(reasons: Iterable[tuple[str, int]]) -> str:
    counts: Counter[str] = Counter()
    for reason, count in reasons:
        counts[reason] += count
    return counts.most_common(1)[0][0]
