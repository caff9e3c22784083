"""A report's rows in groups by what a reader does with them, and its failures, each once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from perfci.finding import LOOKS_SLOWER
from perfci.metrics import METRICS
from perfci.model.case import Failure
from perfci.model.report import Report
from perfci.model.status import traits
from perfci.report.rows import Row
from perfci.verdict.policy import worsening

_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")
"""Addresses, process ids and line numbers, which differ between two runs of the same failure."""


def shown_failures(report: Report) -> tuple[Failure, ...]:
    """Return the failures to show. The same failure on both sides is one, of ``base and head``.

    A case that failed on base only has a ``new`` row, which gives the reason. It isn't shown again.
    """
    new = {row.case for row in report.results if row.status == "new"}
    shown: dict[tuple[str, ...], Failure] = {}
    for failure in report.failures:
        if failure.side == "base" and failure.case in new:
            continue
        alike = (failure.case, failure.stage, failure.kind)
        before = shown.get(alike)
        if before is None:
            shown[alike] = failure
        elif failure.side not in before.side.split():
            shown[alike] = replace(before, side=f"{before.side} and {failure.side}")
    return tuple(shown.values())


def by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names that share each reason."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return names


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


class Outline:
    """A report's ``rows`` in ``groups``. Each row is in one group.

    The groups of moved rows are sorted, the worst first. Other groups keep the report's order.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        reasons = report.verdict.findings
        slower = {(known.case, known.metric) for known in reasons if known.code == LOOKS_SLOWER}
        self.rows = tuple(
            Row(row, place, (row.case, row.metric) in slower)
            for place, row in enumerate(report.results)
        )
        self.groups: dict[str, list[Row]] = {name: [] for name in GROUPS}
        for row in self.rows:
            self.groups[group_of(row)].append(row)
        for name in ("regressed", "warned", "improved"):
            self.groups[name].sort(key=lambda row: (traits(row.comparison.status).rank, -row.size))
        self.undecided.sort(key=lambda row: not row.looks_slower)

    @cached_property
    def moved(self) -> list[Row]:
        """The rows of all groups with the title ``MOVED``."""
        moved = (name for name, group in GROUPS.items() if group.on_page == MOVED)
        return [row for name in moved for row in self.groups[name]]

    @property
    def undecided(self) -> list[Row]:
        """The undecided rows that may fail the report. Those that look slower come first."""
        return self.groups["undecided"]

    @cached_property
    def failed(self) -> frozenset[str]:
        """The cases that failed."""
        return frozenset(failure.case for failure in self.report.failures)

    @cached_property
    def failures(self) -> tuple[tuple[Failure, tuple[str, ...]], ...]:
        """The failures to show, each once with all cases that failed in the same way."""
        shared: dict[tuple[str, ...], tuple[Failure, list[str]]] = {}
        for failure in shown_failures(self.report):
            message = _NUMBER.sub("0", failure.message)
            key = (failure.side, failure.stage, failure.kind, message)
            shared.setdefault(key, (failure, []))[1].append(failure.case)
        return tuple((failure, tuple(cases)) for failure, cases in shared.values())

    def is_shown_as_failure(self, row: Row) -> bool:
        """Return whether the row only repeats one of ``failures``."""
        return row.comparison.status == "failed" and row.case in self.failed

    @cached_property
    def cases(self) -> int:
        """The number of cases."""
        return len({row.case for row in self.rows} | self.failed)


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
