"""The statuses of a comparison and their meanings, which the verdict and all renderers read.

To add a status, add a line to ``Status``, a line to the table ``_TRAITS``, and the words of its
findings to ``model.words``. A status with a section of its own also needs a line of ``GROUPS`` in
``report.groups``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Status = Literal[
    "regressed",
    "improved",
    "unchanged",
    "untouched",
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
"""The cause of a status. ``code``: what differs between the sides. ``noise``: variance between
processes. ``machine``: something else ran, or the machine throttled. ``method``: how it was
measured (too few rounds, a value too coarse, sides that can't be compared). Empty: none of these.
"""


@dataclass(frozen=True, slots=True)
class Traits:
    """The meaning of a status, for every row that has it.

    ``rank`` orders rows, the worst first. ``group`` is where a report lists the row: one of
    ``report.groups.GROUPS``, or ``moved``, which is split into three of these. ``sense``: whether
    the row got worse or better. ``style`` is its colour on a terminal, ``junit`` its outcome as a
    JUnit test. ``lacks`` names the sides of which the row has no numbers.
    ``answers``: the row is a result even where nothing was measured.
    ``settled``: the row certainly didn't regress.
    ``cause``: what to blame, unless the row's findings or its case show something else.
    ``leaves_open``: rows of this status leave the verdict inconclusive, whatever they gate. This is
    the code of the verdict's reason for it.
    ``counted``: one such reason counts all these rows. Otherwise each row has a reason of its own.
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
    "untouched": Traits(5, "untouched", "steady", "dim", "skipped"),
}
"""The table of statuses: rank, group, sense, style and JUnit outcome, then what is special."""


def traits(status: Status) -> Traits:
    """Return the meaning of ``status``. KeyError for a status that the table lacks."""
    return _TRAITS[status]
