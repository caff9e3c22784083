"""The statuses of a comparison, each with its meaning. All renderers read this table.

A new status is a line of ``Status``, a line of the table, and its wording in ``words``.
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
]
Group = Literal["moved", "undecided", "unchanged", "new", "removed", "not_comparable"]
Sense = Literal["worse", "better", "steady"]
JUnit = Literal["failure", "error", "skipped", "passed"]
Side = Literal["base", "head"]


@dataclass(frozen=True, slots=True)
class Traits:
    """The meaning of a status.

    ``rank`` orders rows, the worst first. ``group`` is where a report lists them, ``style`` their
    colour on a terminal, and ``junit`` the row's outcome as a test. A row of the status has no
    numbers of the sides it ``lacks``. ``answers``: it is a result even where nothing was measured.
    ``settled``: it is known that nothing regressed.
    """

    rank: int
    group: Group
    sense: Sense
    style: str
    junit: JUnit
    lacks: tuple[Side, ...] = ()
    answers: bool = False
    settled: bool = False


_TRAITS: Mapping[Status, Traits] = {
    "regressed": Traits(0, "moved", "worse", "red", "failure"),
    "failed": Traits(1, "moved", "worse", "red", "error", lacks=("base", "head")),
    "improved": Traits(2, "moved", "better", "green", "passed", settled=True),
    "inconclusive": Traits(3, "undecided", "steady", "yellow", "skipped"),
    "not_comparable": Traits(
        4, "not_comparable", "steady", "yellow", "skipped", lacks=("base", "head"), answers=True
    ),
    "new": Traits(5, "new", "steady", "", "skipped", lacks=("base",), answers=True),
    "removed": Traits(5, "removed", "steady", "", "skipped", lacks=("head",), settled=True),
    "unchanged": Traits(5, "unchanged", "steady", "dim", "passed", settled=True),
}


def traits(status: Status) -> Traits:
    """Return what ``status`` means. KeyError where it is not in the table."""
    return _TRAITS[status]
