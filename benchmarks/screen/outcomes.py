"""The outcome of counting two sides: the kinds of counts by which they differ."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from benchmarks.screen.counts import KINDS, Counts

LISTED = ("operators", "allocations", "graphs", "calls")
"""The kinds of counts that such a screen was proposed with. Shapes give FLOPs, too."""
FULL = KINDS


@dataclass(frozen=True, slots=True)
class Outcome:
    """The kinds of counts by which two sides differ.

    ``set`` is the question, ``plant`` says what is planted. ``ratio`` is of the best calls of both
    processes. ``processes``: the case has others, so that it can't be screened. ``changed``: it has
    loaded changed code. ``example`` is a key with both counts.
    """

    set: str
    case: str
    plant: str
    differing: tuple[str, ...]
    ratio: float
    processes: bool
    changed: bool = True
    example: str = ""

    def screened(self, kinds: Container[str]) -> bool:
        """Return whether a screen of these ``kinds`` of counts would leave the case out."""
        return not self.processes and not any(kind in kinds for kind in self.differing)


def compared(question: str, case: str, plant: str, sides: tuple[Counts, Counts]) -> Outcome:
    """Compare the counts of both sides. Raises SystemExit where one of them failed."""
    base, head = sides
    if failure := base.failure or head.failure:
        raise SystemExit(f"{case} {plant}: {failure}")
    differing = tuple(kind for kind in KINDS if base.counted[kind] != head.counted[kind])
    example = ""
    if differing:
        before, after = (side.counted[differing[0]] for side in sides)
        key = min(key for key in {**before, **after} if before.get(key) != after.get(key))
        example = f"{key}: {before.get(key, 0)} → {after.get(key, 0)}"[:200]
    return Outcome(
        question,
        case,
        plant,
        differing,
        round(head.call_s / base.call_s, 2),
        base.processes or head.processes,
        example=example,
    )
