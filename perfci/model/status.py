"""The statuses of a comparison, each with its meaning. The verdict and all renderers read it.

A new status is a line of ``Status``, a line of the table, and the words of its findings in
``words``. A status with a section of its own is also a line of ``GROUPS`` in ``report.outline``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Status = Literal[
    "regressed",
    "improved",
    "unchanged",
    "inconclusive",
    "new",
    "removed",
    "failed",
    "not_comparable",
    "not_measured",
]
Sense = Literal["worse", "better", "steady"]
JUnit = Literal["failure", "error", "skipped", "passed"]
Side = Literal["base", "head"]
Cause = Literal["code", "noise", "machine", "method", ""]
"""``code``: what differs between the sides. ``noise``: variance between processes. ``machine``:
something else ran, or the machine throttled. ``method``: how it was measured (too few rounds, a
value too coarse, sides that can't be compared). Empty where there is nothing to blame."""


@dataclass(frozen=True, slots=True)
class Traits:
    """The meaning of a status.

    ``rank`` orders rows, the worst first. ``group`` is where a report lists them: one of
    ``report.outline.GROUPS``, or ``moved`` for three of them. ``style`` is their colour on a
    terminal, and ``junit`` the row's outcome as a test. A row of the status has no
    numbers of the sides it ``lacks``. ``answers``: it is a result even where nothing was measured.
    ``settled``: it is known that nothing regressed. ``cause`` is what to blame, if the row's
    findings and its case don't say otherwise. ``leaves_open``: the code of the verdict's reason
    if rows of this status leave it inconclusive whatever they gate. There is one for each case, or
    one for all that are ``counted``.
    """

    rank: int
    group: str
    sense: Sense
    style: str
    junit: JUnit
    lacks: tuple[Side, ...] = ()
    answers: bool = False
    settled: bool = False
    cause: Cause = ""
    leaves_open: str = ""
    counted: bool = False


_TRAITS: Mapping[Status, Traits] = {
    "regressed": Traits(0, "moved", "worse", "red", "failure", cause="code"),
    "failed": Traits(1, "moved", "worse", "red", "error", lacks=("base", "head"), cause="code"),
    "improved": Traits(2, "moved", "better", "green", "passed", settled=True, cause="code"),
    "inconclusive": Traits(3, "undecided", "steady", "yellow", "skipped", cause="noise"),
    "not_comparable": Traits(
        4,
        "not_comparable",
        "steady",
        "yellow",
        "skipped",
        lacks=("base", "head"),
        answers=True,
        cause="method",
        leaves_open="not-comparable",
    ),
    "not_measured": Traits(
        4,
        "not_measured",
        "steady",
        "yellow",
        "skipped",
        lacks=("base", "head"),
        leaves_open="not-measured",
        counted=True,
    ),
    "new": Traits(5, "new", "steady", "", "skipped", lacks=("base",), answers=True),
    "removed": Traits(5, "removed", "steady", "", "skipped", lacks=("head",), settled=True),
    "unchanged": Traits(5, "unchanged", "steady", "dim", "passed", settled=True),
}


def traits(status: Status) -> Traits:
    """Return what ``status`` means. KeyError where it is not in the table."""
    return _TRAITS[status]
