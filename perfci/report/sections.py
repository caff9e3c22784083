"""What a comment says of each report: what decides stands open, all else is folded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfci.model.case import Failure
from perfci.model.report import Comparison, Explanation, ModeMatrix, Report, ShapeTable
from perfci.model.run import Side
from perfci.report import modes, shapes
from perfci.report.comment_rows import Because, reasons_of
from perfci.report.outline import (
    Outline,
    gates,
    headline,
    likeness,
    other_reasons,
    outline,
    same_code_cases,
    shown_failures,
)
from perfci.report.rows import CaseWhy, other_explanations, past_lines, replay_line, whys
from perfci.units import counted, listed

MOST_REASONS = 5
MOST_NAMES = 20
MOST_TABLE_ROWS = 1_000
"""A comment has room for fewer, and a stranger's report may hold 20,000."""
MOST_FOLDED_FAILURES = 50
"""Each with up to 4,000 characters of its output."""
_MOST_ROWS = 8
_FEWEST_ROWS = 4
_MOST_FAILURES = 3
_MOST_TESTS = 30
_MOST_MATRICES = 10
_MARKS = {"fail": "\u274c", "error": "\U0001f4a5", "inconclusive": "\u2754", "pass": "\u2705"}


@dataclass(frozen=True, slots=True)
class Section:
    """One report's part of the comment. What is ``more_`` is folded.

    ``shown`` are the rows that decide: what regressed, else what isn't decided, else what else
    moved. ``sides`` is empty where it is shown once for all. ``explained_above`` counts
    explanations, and ``failed_above`` names cases, that an earlier section has shown.
    """

    name: str
    mark: str
    title: str
    alone: bool
    sides: tuple[Side | None, ...]
    how: str
    head_sha: str
    reasons: tuple[str, ...]
    more_reasons: int
    shown: tuple[Comparison, ...]
    below: str
    regressed: tuple[Comparison, ...]
    undecided: tuple[Comparison, ...]
    warned: tuple[Comparison, ...]
    improved: tuple[Comparison, ...]
    because: Mapping[tuple[str, str], Because]
    tests: tuple[Comparison, ...]
    more_tests: int
    modes: tuple[ModeMatrix, ...]
    more_modes: int
    shapes: tuple[ShapeTable, ...]
    more_shapes: int
    explanations: tuple[Explanation, ...]
    more_explanations: tuple[Explanation, ...]
    whys: tuple[CaseWhy, ...]
    open_whys: tuple[CaseWhy, ...]
    explained_above: int
    failures: tuple[Failure, ...]
    more_failures: tuple[Failure, ...]
    failed_above: tuple[str, ...]
    next_step: str
    replay: str
    intended: bool
    past: Mapping[tuple[str, str], str]
    found: Outline
    skipped: Mapping[str, str]
    not_measured: Mapping[str, str]
    same_code: tuple[str, ...]
    more_same_code: int

    @property
    def inside(self) -> tuple[CaseWhy, ...]:
        """Return the whys that say more than their first line."""
        return tuple(one for one in self.whys if one.more)

    @property
    def unchanged(self) -> tuple[Comparison, ...]:
        """Return the rows that gate and are unchanged."""
        return tuple(row for row in self.found.unchanged if row.gate != "info")

    @property
    def left_out(self) -> int:
        """Return how many rows its tables don't hold; its lists say so themselves."""
        found = self.found
        tables = (self.regressed, self.warned, self.improved, self.undecided, self.unchanged)
        every = map(len, (*tables, found.informative, found.new))
        return sum(max(0, rows - MOST_TABLE_ROWS) for rows in every)

    @property
    def folded(self) -> str:
        """Return what the section's fold holds, nothing where there is none."""
        found = self.found
        parts: tuple[tuple[Collection[Any], str], ...] = (
            (self.regressed, "more regressed"),
            (self.warned, "warned"),
            (self.improved, "improved"),
            (self.more_explanations, "more reasons why"),
            (self.inside, "more that differ inside"),
            (self.more_failures, "more failed"),
            (self.undecided, "not decided"),
            (found.unseen, "too noisy to say"),
            (found.informative, "for information"),
            (found.not_comparable, "not comparable"),
            (() if self.alone else found.new, "new"),
            (found.removed, "removed"),
            (self.skipped, "skipped"),
            (self.not_measured, "not measured"),
            (found.unchanged, "unchanged"),
            (found.same_code, "unchanged by the same code"),
        )
        return ", ".join(f"{len(items)} {word}" for items, word in parts if items)


@dataclass(slots=True)
class _Shown:
    """What the sections so far have shown."""

    explanations: set[Explanation] = field(default_factory=set)
    failures: set[tuple[str, ...]] = field(default_factory=set)
    skipped: set[tuple[str, str]] = field(default_factory=set)
    not_measured: set[tuple[str, str]] = field(default_factory=set)


def sections(reports: Sequence[Report], names: Sequence[str]) -> tuple[Section, ...]:
    """Return the parts of the comment, in the order of ``reports``, each with its name."""
    before = _Shown()
    said = frozenset(shared_reasons(reports))
    shared = shared_sides(reports)
    rows = max(_FEWEST_ROWS, _MOST_ROWS // len(reports))
    return tuple(
        _section(report, name, before, said, () if shared else _sides(report), rows)
        for report, name in zip(reports, names, strict=True)
    )


def status_of(report: Report) -> str:
    """Return the verdict's word; a run alone has none, and a part isn't taken for the whole."""
    status = "run" if report.is_one_sided else report.verdict.status
    return f"{status} (shard {report.shard} alone)" if report.shard else status


def mark_of(status: str, *, part: bool = False) -> str:
    """Return the sign that stands before a verdict; a run alone has none, a part passes nothing."""
    return _MARKS.get("inconclusive" if part and status == "pass" else status, "")


def title(report: Report) -> str:
    """Return the verdict in one line: what the table below it shows, counted."""
    said = headline(report)
    found = outline(report)
    match "run" if report.is_one_sided else report.verdict.status:
        case "fail":
            said = failing(report)
        case "inconclusive" if report.interrupted:
            said = (
                f"cut short, {_open_rows(found)} not decided"
                if found.undecided
                else f"cut short: {said}"
            )
        case "inconclusive" if found.undecided and _is_of_rows(report):
            said = f"undecided: {_open_rows(found)}"
        case "inconclusive":
            said = f"undecided: {said}"
        case "error":
            said = f"error: {said}"
    return f"{said} (shard {report.shard} alone)" if report.shard else said


def failing(report: Report) -> str:
    """Return how many regressions there are in how many cases, and how many cases failed."""
    worse = [row for row in outline(report).moved if row.status == "regressed" and gates(row)]
    failed = {failure.case for failure in shown_failures(report)}
    cases = counted(len({row.case for row in worse}), "case")
    parts = [f"{counted(len(worse), 'regression')} in {cases}"] if worse else []
    if failed:
        parts.append(f"{counted(len(failed), 'case')} failed")
    return ", ".join(parts) or headline(report)


def _open_rows(found: Outline) -> str:
    cases = counted(len({row.case for row in found.undecided}), "case")
    return f"{counted(len(found.undecided), 'comparison')} in {cases}"


def _is_of_rows(report: Report) -> bool:
    """Return whether the verdict's first reason is a row that stands in the table."""
    return bool(report.verdict.findings) and report.verdict.findings[0].code == "undecided"


def sides_of(report: Report) -> tuple[str, ...]:
    """Return in words what was compared, base first; of a run alone what was measured."""
    return tuple(_side(side) for side in _sides(report))


def _sides(report: Report) -> tuple[Side | None, ...]:
    return (report.head,) if report.is_one_sided else (report.base, report.head)


def _side(side: Side | None) -> str:
    if side is None:
        return "no baseline"
    short = side.sha[:12]
    text = side.rev if not short or short in side.rev else f"{side.rev} ({short})"
    return text + (" with uncommitted changes" if side.dirty else "")


def shared_sides(reports: Sequence[Report]) -> tuple[Side | None, ...]:
    """Return the sides that all of several reports have; one report's are its section's."""
    first, *others = map(_sides, reports)
    return first if others and all(one == first for one in others) else ()


def shared_reasons(reports: Sequence[Report]) -> tuple[str, ...]:
    """Return the reasons that all of several reports give; one report's are its section's."""
    first, *others = (other_reasons(report) for report in reports)
    return tuple(reason for reason in first if others and all(reason in one for one in others))


def _section(
    report: Report,
    name: str,
    before: _Shown,
    said: Collection[str],
    sides: tuple[Side | None, ...],
    rows: int,
) -> Section:
    failures = shown_failures(report)
    failed = {failure.case for failure in failures}
    found = outline(report)
    moved = tuple(row for row in found.moved if not (row.status == "failed" and row.case in failed))
    open_rows = _deciding(report, moved, found)
    shown = open_rows[:rows]
    reasons = tuple(reason for reason in other_reasons(report) if reason not in said)
    explanations = other_explanations(report)
    same_code = same_code_cases(report)
    of_moved = (row for row in moved if row.p is not None or row.method == "exact")
    of_others = (row for row in (*found.undecided, *found.unchanged) if row.p is not None)
    tests = tuple(row for row in (*of_moved, *of_others) if row.gate != "info")
    matrices, by_shape = modes.shown(report), shapes.shown(report)
    above_the_fold = set(map(id, shown))  # comparing rows is slow, and a report may have 20,000
    folded = tuple(row for row in (*moved, *found.undecided) if id(row) not in above_the_fold)
    groups = tuple(map(tuple, _grouped(folded)))
    inside = whys(report)
    because, used, open_whys = reasons_of(shown, report, inside)
    new = tuple(one for one in explanations if one not in before.explanations)
    listed_ones = tuple(one for one in new if one not in used)
    fresh = tuple(one for one in failures if likeness(one) not in before.failures)
    above = dict.fromkeys(one.case for one in failures if likeness(one) in before.failures)
    regressed, undecided, warned, improved = groups
    section = Section(
        name=name,
        mark=mark_of(
            "run" if report.is_one_sided else report.verdict.status, part=bool(report.shard)
        ),
        title=title(report),
        alone=report.is_one_sided,
        sides=sides,
        how=_how(report, name),
        head_sha="" if report.head.dirty else report.head.sha,
        reasons=reasons[:MOST_REASONS],
        more_reasons=len(reasons) - MOST_REASONS,
        shown=shown,
        below=_below(groups, report),
        regressed=regressed,
        undecided=undecided,
        warned=warned,
        improved=improved,
        because=because,
        tests=tests[:_MOST_TESTS],
        more_tests=len(tests) - _MOST_TESTS,
        modes=matrices[:_MOST_MATRICES],
        more_modes=len(matrices) - _MOST_MATRICES,
        shapes=by_shape[:_MOST_MATRICES],
        more_shapes=len(by_shape) - _MOST_MATRICES,
        explanations=listed_ones[:MOST_REASONS],
        more_explanations=listed_ones[MOST_REASONS:],
        whys=inside,
        open_whys=open_whys,
        explained_above=len(explanations) - len(new),
        failures=fresh[:_MOST_FAILURES],
        more_failures=fresh[_MOST_FAILURES:],
        failed_above=tuple(above),
        next_step=_next_step(report, shown),
        replay=replay_line(report, dict.fromkeys(row.case for row in shown), _rounds(shown)),
        intended=any(row.status == "regressed" and gates(row) for row in shown),
        past=past_lines(report),
        found=found,
        skipped=dict(one for one in report.skipped.items() if one not in before.skipped),
        not_measured=dict(
            one for one in report.not_measured.items() if one not in before.not_measured
        ),
        same_code=same_code[:MOST_NAMES],
        more_same_code=len(same_code) - MOST_NAMES,
    )
    before.explanations |= set(report.explanations)
    before.failures |= {likeness(one) for one in failures}
    before.skipped |= set(report.skipped.items())
    before.not_measured |= set(report.not_measured.items())
    return section


def _deciding(
    report: Report, moved: Sequence[Comparison], found: Outline
) -> tuple[Comparison, ...]:
    """Return the rows that the verdict is of, the worst first; of a pass what else moved."""
    bad = tuple(
        row for row in moved if row.status == "failed" or (row.status == "regressed" and gates(row))
    )
    accepted = tuple(row for row in moved if row.accepted)
    if bad:
        return (*bad, *accepted)
    if report.verdict.status == "inconclusive" and found.undecided:
        return (*found.undecided, *accepted)
    return tuple(moved)


def _grouped(rows: Sequence[Comparison]) -> tuple[list[Comparison], ...]:
    """Return what regressed or failed, what isn't decided, what only warns, what improved."""
    groups: tuple[list[Comparison], ...] = ([], [], [], [])
    for row in rows:
        if row.status == "inconclusive":
            groups[1].append(row)
        elif row.status == "improved":
            groups[3].append(row)
        else:
            groups[0 if gates(row) or row.status == "failed" else 2].append(row)
    return groups


def _below(groups: Sequence[Sequence[Comparison]], report: Report) -> str:
    """Return what moved and stands below, or nothing."""
    regressed, undecided, warned, improved = map(len, groups)
    is_open = "more undecided row" if report.verdict.status == "inconclusive" else "undecided row"
    parts = [
        counted(number, what)
        for number, what in (
            (regressed, "more regression"),
            (warned, "warning"),
            (improved, "improvement"),
            (undecided, is_open),
        )
        if number
    ]
    return f"Folded below: {listed(parts)}." if parts else ""


def _how(report: Report, name: str) -> str:
    """Return how the two sides were measured."""
    match report.command:
        case "compare":
            return f"measured side by side on {name}"
        case "check":
            return f"measured on {name}, against its stored baseline"
        case _:
            return f"measured on {name}"


def _rounds(shown: Sequence[Comparison]) -> int:
    """Return how many rounds decide the undecided rows, as far as they say; 0 where none does."""
    wanted = (
        one.arguments.get("rounds") or one.arguments.get("needed")
        for row in shown
        for one in row.findings
        if row.status == "inconclusive" and one.arguments.get("setting") == "rounds"
    )
    return max((number for number in wanted if isinstance(number, int)), default=0)


def _next_step(report: Report, shown: Sequence[Comparison]) -> str:
    """Return what the command beside it is for."""
    if report.interrupted:
        return "Measure the rest"
    if any(row.status == "inconclusive" for row in shown):
        return "To decide"
    return "Reproduce"
