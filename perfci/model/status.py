"""The statuses of a comparison, each with what it means to a reader. All renderers read this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

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
    """What a status means.

    ``rank`` orders rows, the worst first. ``group`` is where a report lists them, ``style`` how a
    terminal colours them, ``junit`` what the row is as a test. A row of the status has no numbers
    of the sides in ``without``. ``answers``: it is a result even where nothing was measured.
    """

    rank: int
    group: Group
    sense: Sense
    style: str
    junit: JUnit
    without: tuple[Side, ...] = ()
    answers: bool = False


def traits(status: Status) -> Traits:  # noqa: PLR0911 (a table: one return for each status)
    """Return what ``status`` means; a status that is not listed here fails the type check."""
    match status:
        case "regressed":
            return Traits(0, "moved", "worse", "red", "failure")
        case "failed":
            return Traits(1, "moved", "worse", "red", "error", without=("base", "head"))
        case "improved":
            return Traits(2, "moved", "better", "green", "passed")
        case "inconclusive":
            return Traits(3, "undecided", "steady", "yellow", "skipped")
        case "not_comparable":
            return Traits(
                4,
                "not_comparable",
                "steady",
                "yellow",
                "skipped",
                without=("base", "head"),
                answers=True,
            )
        case "new":
            return Traits(5, "new", "steady", "", "skipped", without=("base",), answers=True)
        case "removed":
            return Traits(5, "removed", "steady", "", "skipped", without=("head",))
        case "unchanged":
            return Traits(5, "unchanged", "steady", "dim", "passed")
        case _:
            assert_never(status)
