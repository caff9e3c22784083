"""Sections of a comment, one for each report. Deciding rows stand open, all else is folded.

A section is a mapping of the values that the comment's templates read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perfci.model.report import Report
from perfci.report.outline import GROUPS, RowGroup
from perfci.report.replay import replay_line
from perfci.report.rows import Row
from perfci.report.view import ReportView, mark_of
from perfci.report.why import CaseWhy
from perfci.units import counted, format_share

Section = Mapping[str, Any]
_OPEN = ("undecided", "not_comparable", "not_measured")
"""Groups that leave a case undecided."""
_MOST_ACCEPTED = 5
"""Regressions that each get a table to paste that accepts them. More share one."""
_MOST_ROWS = 8
"""Open rows of all sections together."""
_FEWEST_ROWS = 4
"""Open rows of each section at least, however many sections there are."""
_MOST_FAILURES = 3
"""Open failures of a section."""


def sections(views: Sequence[ReportView], names: Sequence[str]) -> tuple[Section, ...]:
    """Return a section for each of ``views``, in order. ``names`` are the environments'."""
    most = max(_FEWEST_ROWS, _MOST_ROWS // len(views))
    return tuple(_section(view, name, most) for view, name in zip(views, names, strict=True))


def _section(view: ReportView, name: str, most: int) -> Section:
    """Return one section. ``shown`` are its open rows, at most ``most`` of them."""
    report = view.report
    moved = [row for row in view.moved if not view.is_shown_as_failure(row)]
    shown = _deciding(view, moved)[:most]
    above = set(shown) | set(view.groups["new"] if report.is_one_sided else ())
    groups = {
        name: [row for row in rows if row not in above and not view.is_shown_as_failure(row)]
        for name, rows in view.groups.items()
    }
    places = {case: place for place, case in enumerate(dict.fromkeys(row.case for row in shown))}
    whys = sorted(view.whys, key=lambda why: places.get(why.case, len(places)))
    folds = _folds(view, groups, whys)
    return {
        "view": view,
        "name": name,
        "tally": _tally(view),
        "how": _how(report, name),
        "shown": shown,
        "tests": _tested(moved, view),
        "because": whys[:_MOST_ROWS],
        "failures": view.failures[:_MOST_FAILURES],
        "next_step": _next_step(report, shown),
        "replay": replay_line(
            report, dict.fromkeys(row.case for row in shown), _rounds(report, shown)
        ),
        "accept": _acceptance(
            row for row in shown if row.comparison.status == "regressed" and row.gates
        ),
        "folded": ", ".join(f"{count} {group.heading.lower()}" for group, _, count in folds),
        "folds": folds,
    }


def _tally(view: ReportView) -> str:
    """Return how many cases failed, are undecided and passed, or "" if all passed."""
    marks = dict.fromkeys(view.failed, "fail")
    worst_first = ("regressed", *_OPEN, *(GROUPS.keys() - {"regressed", "new", "removed", *_OPEN}))
    for name in worst_first:
        word = "fail" if name == "regressed" else "inconclusive" if name in _OPEN else "pass"
        for row in view.groups[name]:
            marks.setdefault(row.case, word)
    counts = Counter(marks.values())
    if view.report.is_one_sided or counts.keys() <= {"pass"}:
        return ""
    words = ("fail", "inconclusive", "pass")
    return " ".join(f"{mark_of(word)} {counts[word]}" for word in words if counts[word])


def by_case(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of each case together, the cases in the order of their first row."""
    places: dict[str, int] = {}
    for row in rows:
        places.setdefault(row.case, len(places))
    return sorted(rows, key=lambda row: places[row.case])


def _deciding(view: ReportView, moved: Sequence[Row]) -> Sequence[Row]:
    """Return the rows that decide the verdict, the worst first.

    These are the rows that fail the report, or else the undecided rows, or else all moved rows.
    """
    bad = [
        row
        for row in moved
        if row.comparison.status == "failed" or (row.comparison.status == "regressed" and row.gates)
    ]
    accepted = [row for row in moved if row.comparison.accepted]
    if bad:
        return [*bad, *accepted]
    if view.word == "inconclusive" and view.undecided:
        return [*view.undecided, *accepted]
    return moved


def _tested(moved: Sequence[Row], view: ReportView) -> list[Row]:
    """Return the rows with a test, those that moved first. Rows for information have no place."""
    others = (*view.undecided, *view.groups["unchanged"])
    tested = [
        *(row for row in moved if row.comparison.p is not None or row.comparison.method == "exact"),
        *(row for row in others if row.comparison.p is not None),
    ]
    return [row for row in tested if row.comparison.gate != "info"]


def unseen_text(rows: Sequence[Row]) -> str:
    """Return one line on the undecided metrics that fail nothing, and how to see more of them."""
    by_metric: dict[str, list[Row]] = {}
    for row in rows:
        by_metric.setdefault(row.comparison.metric, []).append(row)
    texts = []
    for metric, rows_of_metric in by_metric.items():
        text = f"{metric} in {counted(len(rows_of_metric), 'case')}"
        if known := [
            row.comparison.detectable
            for row in rows_of_metric
            if row.comparison.detectable is not None
        ]:
            text += f", at worst a change of {format_share(max(known))} was in sight"
        texts.append(text)
    return f"{'; '.join(texts)}. More `--rounds` show smaller changes."


def _how(report: Report, name: str) -> str:
    """Return how the two sides were measured."""
    match report.command:
        case "compare":
            return f"measured side by side on {name}"
        case "check":
            return f"measured on {name}, against its stored baseline"
        case _:
            return f"measured on {name}"


def _rounds(report: Report, shown: Sequence[Row]) -> int:
    """Return the rounds that would decide the rows that leave the verdict open, or 0 if unknown."""
    open_rows = {
        (reason.case, reason.metric)
        for reason in report.verdict.findings
        if reason.code == "undecided"
    }
    wanted = (
        finding.arguments.get("needed") or finding.arguments.get("rounds")
        for row in shown
        for finding in row.comparison.findings
        if (row.case, row.comparison.metric) in open_rows
        and finding.arguments.get("setting") == "rounds"
    )
    return max((number for number in wanted if isinstance(number, int)), default=0)


def _acceptance(rows: Iterable[Row]) -> str:
    """Return the TOML tables for the configuration that accept ``rows``; one table for many."""
    named = [(row.case, row.comparison.metric) for row in rows]
    if len(named) > _MOST_ACCEPTED:
        cases, metrics = ({*names} for names in zip(*named, strict=True))
        named = [
            (min(cases) if len(cases) == 1 else "*", min(metrics) if len(metrics) == 1 else "*")
        ]
    tables = (
        "[[tool.perfci.accept]]\n"
        f"case = {json.dumps(case, ensure_ascii=False)}\n"
        f"metric = {json.dumps(metric, ensure_ascii=False)}\n"
        'because = "…"'
        for case, metric in named
    )
    return "\n\n".join(tables)


def _next_step(report: Report, shown: Sequence[Row]) -> str:
    """Return the words before the replay command: what it is for."""
    if report.interrupted:
        return "Measure the rest"
    if any(row.comparison.status == "inconclusive" for row in shown):
        return "To decide"
    return "Reproduce"


def _folds(
    view: ReportView, groups: Mapping[str, Sequence[Row]], whys: Sequence[CaseWhy]
) -> list[tuple[RowGroup, Sequence[Any], int]]:
    """Return each fold of the section: its group, the entries to show, and how many it has."""
    report = view.report
    lists: dict[str, tuple[tuple[RowGroup, Sequence[Any]], ...]] = {
        "improved": (
            (RowGroup("More reasons why", "why"), whys[_MOST_ROWS:]),
            (RowGroup("More that differ inside", "inside"), [why for why in whys if why.more]),
            (RowGroup("More failed", "failed"), view.failures[_MOST_FAILURES:]),
        ),
        "removed": (
            (RowGroup("Skipped", "reasons"), list(report.skipped.items())),
            (RowGroup("Not measured", "reasons"), list(report.not_measured.items())),
        ),
    }
    folds: list[tuple[RowGroup, Sequence[Any], int]] = []
    for name, group in GROUPS.items():
        rows = groups[name]
        shown = (
            [row for row in rows if row.comparison.gate != "info"] if name == "unchanged" else rows
        )
        folds.append((group, shown, len(rows)))
        folds += [(other, entries, len(entries)) for other, entries in lists.get(name, ())]
    return [fold for fold in folds if fold[-1]]
