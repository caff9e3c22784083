"""Sections of a comment, one for each report. Deciding rows stand open, all else is folded.

A section is a mapping of the values that the comment's templates read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from perfci.model.report import Report
from perfci.report.outline import GROUPS, RowGroup
from perfci.report.replay import replay_line
from perfci.report.rows import Row, metric_words
from perfci.report.view import ReportView, mark_of
from perfci.units import counted, first_of, format_share, listed

Section = Mapping[str, Any]
_OPEN = ("undecided", "not_comparable", "not_measured")
"""Groups that leave a case undecided."""
_MOST_ACCEPTED = 5
"""Regressions that each get a table to paste that accepts them. More share one."""
_MOST_ROWS = 8
"""Open rows of all sections together."""
_FEWEST_ROWS = 4
"""Open rows of each section at least, however many sections there are."""
_MOST_METRICS = 3
"""Metrics that a fold's line names."""
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
    folded = {
        "more_because": whys[_MOST_ROWS:],
        "inside": [why for why in view.whys if why.more],
        "more_failures": view.failures[_MOST_FAILURES:],
        "skipped": list(report.skipped.items()),
        "not_measured": list(report.not_measured.items()),
    }
    folds = [fold for fold in _folds(groups, folded) if fold[-1]]
    return {
        "view": view,
        "name": name,
        "tally": _tally(view),
        "how": _how(report, name),
        "shown": shown,
        "below": _below(groups, report),
        "tests": _tested(moved, view),
        "because": whys[:_MOST_ROWS],
        "failures": view.failures[:_MOST_FAILURES],
        "next_step": _next_step(report, shown),
        "replay": replay_line(
            report, dict.fromkeys(row.case for row in shown), _rounds(report, shown)
        ),
        "accept": _acceptance(row for row in shown if row.of.status == "regressed" and row.gates),
        "folded": ", ".join(
            f"{count} {group.counted}{_metrics(view, group)}" for group, _, count in folds
        ),
        "folds": sorted(
            ((group, entries) for group, entries, _ in folds if entries),
            key=lambda fold: fold[0].last,
        ),
    }


def _metrics(view: ReportView, group: RowGroup) -> str:
    """Return the metrics of the rows too noisy to say, none of which fails the report."""
    if group is not GROUPS["unseen"]:
        return ""
    metrics = dict.fromkeys(metric_words(row.of.metric) for row in view.groups["unseen"])
    return f" ({first_of(list(metrics), _MOST_METRICS)}; none gates)"


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
        if row.of.status == "failed" or (row.of.status == "regressed" and row.gates)
    ]
    accepted = [row for row in moved if row.of.accepted]
    if bad:
        return [*bad, *accepted]
    if view.word == "inconclusive" and view.undecided:
        return [*view.undecided, *accepted]
    return moved


def _below(groups: Mapping[str, Sequence[Row]], report: Report) -> str:
    """Return the counts of the moved rows that are folded below, or nothing."""
    more = "more " if report.verdict.status == "inconclusive" else ""
    nouns = {
        "regressed": "more regression",
        "warned": "warning",
        "improved": "improvement",
        "undecided": f"{more}undecided row",
    }
    parts = [counted(len(groups[name]), noun) for name, noun in nouns.items() if groups[name]]
    return f"Folded below: {listed(parts)}." if parts else ""


def _tested(moved: Sequence[Row], view: ReportView) -> list[Row]:
    """Return the rows with a test, those that moved first. Rows for information have no place."""
    others = (*view.undecided, *view.groups["unchanged"])
    tested = [
        *(row for row in moved if row.of.p is not None or row.of.method == "exact"),
        *(row for row in others if row.of.p is not None),
    ]
    return [row for row in tested if row.of.gate != "info"]


def unseen_text(rows: Sequence[Row]) -> str:
    """Return one line on the undecided metrics that fail nothing, and how to see more of them."""
    by_metric: dict[str, list[Row]] = {}
    for row in rows:
        by_metric.setdefault(row.of.metric, []).append(row)
    texts = []
    for metric, rows_of_metric in by_metric.items():
        text = f"{metric} in {counted(len(rows_of_metric), 'case')}"
        if known := [row.of.detectable for row in rows_of_metric if row.of.detectable is not None]:
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
        for finding in row.of.findings
        if (row.case, row.of.metric) in open_rows and finding.arguments.get("setting") == "rounds"
    )
    return max((number for number in wanted if isinstance(number, int)), default=0)


def _acceptance(rows: Iterable[Row]) -> str:
    """Return the TOML tables for the configuration that accept ``rows``; one table for many."""
    named = [(row.case, row.of.metric) for row in rows]
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
    if any(row.of.status == "inconclusive" for row in shown):
        return "To decide"
    return "Reproduce"


_OTHER_FOLDS = (
    ("improved", "more_because", RowGroup("More reasons why", "more reasons why", "why")),
    ("improved", "inside", RowGroup("", "more that differ inside", "inside")),
    ("improved", "more_failures", RowGroup("More failed", "more failed", "failed")),
    ("removed", "skipped", RowGroup("Skipped", "skipped", "reasons")),
    ("removed", "not_measured", RowGroup("Not measured", "not measured", "reasons")),
)
"""Folded lists that aren't groups of rows: the group of rows that each follows, its key, and how it
is shown."""


def _folds(
    groups: Mapping[str, Sequence[Row]], others: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[RowGroup, Sequence[Any], int]]:
    """Yield each fold of the section: its group, the entries to show, and how many it has."""
    for name, group in GROUPS.items():
        rows = groups[name]
        shown = [row for row in rows if row.of.gate != "info"] if name == "unchanged" else rows
        yield group, shown, len(rows)
        for after, key, other in _OTHER_FOLDS:
            if after == name:
                yield other, others[key], len(others[key])
