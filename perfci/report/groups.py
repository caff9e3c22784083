"""The groups of a report's rows, by what a reader does with them."""

from __future__ import annotations

from dataclasses import dataclass

from perfci.metrics import METRICS
from perfci.model.status import traits
from perfci.report.rows import Row
from perfci.verdict.policy import worsening


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A group of rows, and how each format shows it.

    The comment folds the group under ``heading``. ``layout`` is how its templates show the rows.
    The page shows the rows open under the title ``on_page``, unless that is empty.
    """

    heading: str
    layout: str
    on_page: str = ""


MOVED = "What moved"
GROUPS: dict[str, RowGroup] = {
    "regressed": RowGroup("More regressed", "compared", MOVED),
    "warned": RowGroup("Warned", "compared", MOVED),
    "improved": RowGroup("Improved", "compared", MOVED),
    "undecided": RowGroup("Not decided", "compared", "Not decided"),
    "unseen": RowGroup("Too noisy to say", "counted"),
    "informative": RowGroup("For information", "compared"),
    "not_comparable": RowGroup("Not comparable", "listed"),
    "not_measured": RowGroup("Cases not measured", "named"),
    "new": RowGroup("New", "measured"),
    "removed": RowGroup("Removed", "listed"),
    "untouched": RowGroup("Ran no changed file", "named"),
    "unchanged": RowGroup("Unchanged", "compared"),
}
"""All groups by name, in a report's order."""


def group_of(row: Row) -> str:
    """Return the name of the row's group."""
    kind, gate, status = traits(row.comparison.status), row.comparison.gate, row.comparison.status
    match kind.group:
        case "undecided":
            return "undecided" if row.gates and _matters(row) else "unseen"
        case "moved" if row.comparison.follows or (gate == "info" and status != "failed"):
            return "informative"
        case "moved" if kind.sense == "better":
            return "improved"
        case "moved":
            return "regressed" if row.gates or status == "failed" else "warned"
    return kind.group


def _matters(row: Row) -> bool:
    """Return whether an undecided row may keep a report from passing, or looks clearly worse."""
    metric = METRICS.get(row.comparison.metric)
    looks_worse = worsening(row.comparison).looks_worse
    return metric is None or metric.undecided == "inconclusive" or looks_worse
