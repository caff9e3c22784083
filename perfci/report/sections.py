"""Sections of a comment, one for each report. Deciding rows stand open, all else is folded.

A section is a mapping of the values that the comment's templates read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from perfci.model.report import Comparison, Report
from perfci.model.run import Side
from perfci.report.case_tables import case_tables
from perfci.report.outline import (
    GROUPS,
    Outline,
    RowGroup,
    gates,
    grouped_failures,
    headline,
    other_reasons,
    shown_failures,
    undecided_warnings,
)
from perfci.report.rows import metric_words, replay_line, whys
from perfci.units import counted, first_of, listed

Section = Mapping[str, Any]
_OPEN = ("undecided", "not_comparable", "not_measured")
"""Groups that leave a case undecided."""
_MOST_ACCEPTED = 5
"""Regressions that each get a table to paste that accepts them. More share one."""
MOST_REASONS = 5
MOST_TABLE_ROWS = 1_000
"""Rows that a table is made of. A comment has room for fewer, and an untrusted report may hold
20,000."""
_MOST_ROWS = 8
"""Open rows of all sections together."""
_FEWEST_ROWS = 4
"""Open rows of each section at least, however many sections there are."""
_MOST_METRICS = 3
"""Metrics that a fold's line names."""
_MOST_FAILURES = 3
"""Open failures of a section."""
_MARKS = {"fail": "\u274c", "error": "\U0001f4a5", "inconclusive": "\u2754", "pass": "\u2705"}


def sections(outlines: Sequence[Outline], names: Sequence[str]) -> tuple[Section, ...]:
    """Return a section for each of ``outlines``, in order. ``names`` are the environments'."""
    most = max(_FEWEST_ROWS, _MOST_ROWS // len(outlines))
    parts = []
    for rows, name in zip(outlines, names, strict=True):
        section = _section(rows, name, most)
        folds = [fold for fold in _folds(section) if fold[-1]]
        section["folded"] = ", ".join(
            f"{count} {group.counted}{_metrics(rows, group)}" for group, _, count in folds
        )
        shown = ((group, entries) for group, entries, _ in folds if entries)
        section["folds"] = sorted(shown, key=lambda fold: fold[0].last)
        parts.append(section)
    return tuple(parts)


def _metrics(rows: Outline, group: RowGroup) -> str:
    """Return the metrics of the rows too noisy to say, none of which fails the report."""
    if group is not GROUPS["unseen"]:
        return ""
    metrics = dict.fromkeys(metric_words(row.metric) for row in rows.groups["unseen"])
    return f" ({first_of(list(metrics), _MOST_METRICS)}; none gates)"


def _section(rows: Outline, name: str, most: int) -> dict[str, Any]:
    """Return the section's values but its folds.

    ``shown`` are the open rows: the rows that fail the report, or else the undecided rows, or else
    all rows that moved. ``most`` is the largest number of them.
    """
    report = rows.report
    failures = grouped_failures(shown_failures(report))
    failed = {case for _, cases in failures for case in cases}
    moved = [row for row in rows.moved if not (row.status == "failed" and row.case in failed)]
    shown = _deciding(rows, moved)[:most]
    measured = rows.groups["new"] if report.is_one_sided else ()
    folded = _folded_rows(rows, (*shown, *measured), failed)
    return {
        "name": name,
        "mark": mark_of(verdict_word(report), part=bool(report.shard)),
        "title": title(rows),
        "alone": report.is_one_sided,
        "measured": measured,
        "tally": _tally(rows),
        "how": _how(report, name),
        "head_sha": "" if report.head.dirty else report.head.sha,
        "reasons": other_reasons(rows),
        "sides": _sides(report),
        "shown": shown,
        "warnings": undecided_warnings(report),
        "groups": folded,
        "below": _below(folded, report),
        "tests": _tested(moved, rows),
        "modes": case_tables(report),
        **_why(report, shown),
        "failures": failures[:_MOST_FAILURES],
        "more_failures": failures[_MOST_FAILURES:],
        "skipped": list(report.skipped.items()),
        "not_measured": list(report.not_measured.items()),
        "next_step": _next_step(report, shown),
        "replay": replay_line(
            report, dict.fromkeys(row.case for row in shown), _rounds(report, shown)
        ),
        "accept": _acceptance(row for row in shown if row.status == "regressed" and gates(row)),
    }


def verdict_word(report: Report) -> str:
    """Return the verdict's word, or ``run`` for a report that compares nothing."""
    return "run" if report.is_one_sided else report.verdict.status


def status_of(report: Report) -> str:
    """Return the verdict's word. For one shard of a report, name the shard, too."""
    status = verdict_word(report)
    return f"{status} (shard {report.shard} alone)" if report.shard else status


def mark_of(status: str, *, part: bool = False) -> str:
    """Return the emoji before a verdict, or "" for a run. A shard that passes gets no pass mark."""
    return _MARKS.get("inconclusive" if part and status == "pass" else status, "")


def title(rows: Outline) -> str:
    """Return the verdict in one line, with the counts of what the table below it shows."""
    report = rows.report
    text = headline(rows)
    match verdict_word(report):
        case "fail":
            text = _failing(rows)
        case "inconclusive" if report.interrupted:
            undecided = f"cut short, {_open_rows(rows)} not decided"
            text = undecided if rows.undecided else f"cut short: {text}"
        case "inconclusive" if report.verdict.looks_slower:
            pass
        case "inconclusive" if rows.undecided and _is_of_rows(report):
            text = f"undecided: {_open_rows(rows)}"
        case "inconclusive":
            text = f"undecided: {text}"
        case "error":
            text = f"error: {text}"
    return f"{text} (shard {report.shard} alone)" if report.shard else text


def _tally(rows: Outline) -> str:
    """Return how many cases failed, are undecided and passed, or "" if all passed."""
    marks = {failure.case: "fail" for failure in rows.report.failures}
    worst_first = ("regressed", *_OPEN, *(GROUPS.keys() - {"regressed", "new", "removed", *_OPEN}))
    for name in worst_first:
        mark = "fail" if name == "regressed" else "inconclusive" if name in _OPEN else "pass"
        for row in rows.groups[name]:
            marks.setdefault(row.case, mark)
    counts = Counter(marks.values())
    if rows.report.is_one_sided or counts.keys() <= {"pass"}:
        return ""
    return " ".join(f"{mark} {counts[name]}" for name, mark in _MARKS.items() if counts[name])


def by_case(rows: Sequence[Comparison]) -> list[Comparison]:
    """Return the rows of each case together, the cases in the order of their first row."""
    places: dict[str, int] = {}
    for row in rows:
        places.setdefault(row.case, len(places))
    return sorted(rows, key=lambda row: places[row.case])


def _failing(rows: Outline) -> str:
    """Return how many regressions there are in how many cases, and how many cases failed."""
    worse = [row for row in rows.moved if row.status == "regressed" and gates(row)]
    failed = {failure.case for failure in shown_failures(rows.report)}
    cases = counted(len({row.case for row in worse}), "case")
    parts = [f"{counted(len(worse), 'regression')} in {cases}"] if worse else []
    if failed:
        parts.append(f"{counted(len(failed), 'case')} failed")
    return ", ".join(parts) or headline(rows)


def _open_rows(rows: Outline) -> str:
    cases = counted(len({row.case for row in rows.undecided}), "case")
    return f"{counted(len(rows.undecided), 'comparison')} in {cases}"


def _is_of_rows(report: Report) -> bool:
    """Return whether the verdict's first reason is an undecided row, which the table shows."""
    return bool(report.verdict.findings) and report.verdict.findings[0].code == "undecided"


def sides_of(report: Report) -> tuple[str, ...]:
    """Return the compared sides in words, base first; for a run alone the measured side."""
    return tuple(_side(side) for side in _sides(report))


def _sides(report: Report) -> tuple[Side | None, ...]:
    return (report.head,) if report.is_one_sided else (report.base, report.head)


def _side(side: Side | None) -> str:
    if side is None:
        return "no baseline"
    short = side.sha[:12]
    text = side.rev if not short or short in side.rev else f"{side.rev} ({short})"
    return text + (" with uncommitted changes" if side.dirty else "")


def _deciding(rows: Outline, moved: Sequence[Comparison]) -> Sequence[Comparison]:
    """Return the rows that decide the verdict, the worst first. For a pass: all moved rows."""
    bad = [
        row for row in moved if row.status == "failed" or (row.status == "regressed" and gates(row))
    ]
    accepted = [row for row in moved if row.accepted]
    if bad:
        return [*bad, *accepted]
    if rows.report.verdict.status == "inconclusive" and rows.undecided:
        return [*rows.undecided, *accepted]
    return moved


def _folded_rows(
    rows: Outline, shown: Sequence[Comparison], failed: Collection[str]
) -> dict[str, list[Comparison]]:
    """Return by group the rows that don't stand open and aren't shown as failures."""
    above = set(map(id, shown))  # by id: comparing rows is slow, and a report may have 20,000
    return {
        name: [
            row
            for row in group
            if id(row) not in above and not (row.status == "failed" and row.case in failed)
        ]
        for name, group in rows.groups.items()
    }


def _below(groups: Mapping[str, Sequence[Comparison]], report: Report) -> str:
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


def _tested(moved: Sequence[Comparison], rows: Outline) -> list[Comparison]:
    tested_moved = (row for row in moved if row.p is not None or row.method == "exact")
    others = (*rows.undecided, *rows.groups["unchanged"])
    tested_others = (row for row in others if row.p is not None)
    return [row for row in (*tested_moved, *tested_others) if row.gate != "info"]


def _how(report: Report, name: str) -> str:
    """Return how the two sides were measured."""
    match report.command:
        case "compare":
            return f"measured side by side on {name}"
        case "check":
            return f"measured on {name}, against its stored baseline"
        case _:
            return f"measured on {name}"


def _rounds(report: Report, shown: Sequence[Comparison]) -> int:
    """Return the rounds that would decide the rows that leave the verdict open, or 0 if unknown."""
    open_rows = {
        (reason.case, reason.metric)
        for reason in report.verdict.findings
        if reason.code == "undecided"
    }
    wanted = (
        finding.arguments.get("needed") or finding.arguments.get("rounds")
        for row in shown
        for finding in row.findings
        if (row.case, row.metric) in open_rows and finding.arguments.get("setting") == "rounds"
    )
    return max((number for number in wanted if isinstance(number, int)), default=0)


def _acceptance(rows: Iterable[Comparison]) -> str:
    """Return the TOML tables for the configuration that accept ``rows``; one table for many."""
    named = [(row.case, row.metric) for row in rows]
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


def _next_step(report: Report, shown: Sequence[Comparison]) -> str:
    """Return the words before the replay command: what it is for."""
    if report.interrupted:
        return "Measure the rest"
    if any(row.status == "inconclusive" for row in shown):
        return "To decide"
    return "Reproduce"


def _why(report: Report, shown: Sequence[Comparison]) -> dict[str, Any]:
    """Return why cases moved, those of ``shown`` rows first: in the open, and in folds."""
    every = whys(report)
    places = {case: place for place, case in enumerate(dict.fromkeys(row.case for row in shown))}
    reasons = sorted(every, key=lambda reason: places.get(reason.case, len(places)))
    return {
        "because": reasons[:_MOST_ROWS],
        "more_because": reasons[_MOST_ROWS:],
        "inside": [why for why in every if why.more],
    }


_OTHER_FOLDS = (
    ("improved", "more_because", RowGroup("More reasons why", "more reasons why", "why")),
    ("improved", "inside", RowGroup("", "more that differ inside", "inside")),
    ("improved", "more_failures", RowGroup("More failed", "more failed", "failed")),
    ("removed", "skipped", RowGroup("Skipped", "skipped", "skipped")),
    ("removed", "not_measured", RowGroup("Not measured", "not measured", "lacking")),
)
"""Folded lists that aren't groups of rows: the group of rows that each follows, its key in the
section, and how it is shown."""


def _folds(section: Section) -> Iterator[tuple[RowGroup, Sequence[Any], int]]:
    """Yield each fold of the section: its group, the entries to show, and how many it has."""
    for name, group in GROUPS.items():
        rows = section["groups"][name]
        listed = [row for row in rows if row.gate != "info"] if name == "unchanged" else rows
        yield group, listed, len(rows)
        for after, entries, other in _OTHER_FOLDS:
            if after == name:
                yield other, section[entries], len(section[entries])
