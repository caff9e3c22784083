"""The pull-request comment: GitHub Markdown that is read in ten seconds."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import Environment, Template
from markupsafe import Markup

from perfci.errors import UsageError
from perfci.model.case import Failure
from perfci.model.modes import ModeMatrix
from perfci.model.report import Comparison, Explanation, Report
from perfci.model.run import Side
from perfci.model.shapes import ShapeTable
from perfci.render import modes, rows, shapes, statistics
from perfci.render.chart import chart, past_lines
from perfci.render.cutting import cut, tidy
from perfci.render.environment import environment_names, fact_tables
from perfci.render.escape import Safe, code, escape, fence
from perfci.render.outline import (
    Outline,
    headline,
    injected_text,
    likeness,
    other_reasons,
    outline,
    part_text,
    ran_lines,
    same_code_cases,
    same_code_text,
    shown_failures,
    unseen_text,
)
from perfci.render.templates import template_environment
from perfci.render.why import CaseWhy, other_explanations, whys
from perfci.units import counted, format_duration, format_share

# What a comment says of each report: what moved stands open, all else is folded.

MOST_REASONS = 5
MOST_NAMES = 20
_MOST_ROWS = 8
_FEWEST_ROWS = 4
_MOST_FAILURES = 3
_MOST_TESTS = 30
_MOST_MATRICES = 10


@dataclass(frozen=True, slots=True)
class Section:
    """One report's part of the comment. What is ``more_`` is folded.

    ``sides`` is empty where it is shown once for all. ``explained_above`` counts explanations, and
    ``failed_above`` names cases, that an earlier section has shown.
    """

    name: str
    status: str
    headline: str
    alone: bool
    sides: tuple[str, ...]
    reasons: tuple[str, ...]
    more_reasons: int
    shown: tuple[Comparison, ...]
    more_shown: tuple[Comparison, ...]
    tests: tuple[Comparison, ...]
    more_tests: int
    modes: tuple[ModeMatrix, ...]
    more_modes: int
    shapes: tuple[ShapeTable, ...]
    more_shapes: int
    explanations: tuple[Explanation, ...]
    more_explanations: tuple[Explanation, ...]
    whys: tuple[CaseWhy, ...]
    explained_above: int
    failures: tuple[Failure, ...]
    more_failures: tuple[Failure, ...]
    failed_above: tuple[str, ...]
    chart: Safe
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
    def folded(self) -> str:
        """Return what the section's fold holds, nothing where there is none."""
        found = self.found
        parts: tuple[tuple[Collection[Any], str], ...] = (
            (self.more_shown, "more that moved"),
            (self.more_explanations, "more reasons why"),
            (self.inside, "more that differ inside"),
            (self.more_failures, "more failed"),
            (found.undecided, "not decided"),
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
        _section(report, name, before, said, () if shared else sides_of(report), rows)
        for report, name in zip(reports, names, strict=True)
    )


def status_of(report: Report) -> str:
    """Return the verdict's word; a run alone has none, and a part isn't taken for the whole."""
    status = "run" if report.is_one_sided else report.verdict.status
    return f"{status} (shard {report.shard} alone)" if report.shard else status


def sides_of(report: Report) -> tuple[str, ...]:
    """Return what was compared, base first; of a run alone what was measured."""
    sides = (report.head,) if report.is_one_sided else (report.base, report.head)
    return tuple(_side(side) for side in sides)


def shared_sides(reports: Sequence[Report]) -> tuple[str, ...]:
    """Return the sides that all of several reports have; one report's are its section's."""
    every = {sides_of(report) for report in reports}
    return every.pop() if len(reports) > 1 and len(every) == 1 else ()


def shared_reasons(reports: Sequence[Report]) -> tuple[str, ...]:
    """Return the reasons that all of several reports give; one report's are its section's."""
    first, *others = (other_reasons(report) for report in reports)
    return tuple(reason for reason in first if others and all(reason in one for one in others))


def _section(
    report: Report,
    name: str,
    before: _Shown,
    said: Collection[str],
    sides: tuple[str, ...],
    rows: int,
) -> Section:
    failures = shown_failures(report)
    failed = {failure.case for failure in failures}
    found = outline(report)
    moved = tuple(row for row in found.moved if not (row.status == "failed" and row.case in failed))
    reasons = tuple(reason for reason in other_reasons(report) if reason not in said)
    explanations = other_explanations(report)
    same_code = same_code_cases(report)
    tests = tuple(
        row
        for row in (*moved, *found.undecided, *found.unchanged)
        if row.gate != "info" and (row.p is not None or (row.method == "exact" and row in moved))
    )
    matrices, by_shape = modes.shown(report), shapes.shown(report)
    new = tuple(one for one in explanations if one not in before.explanations)
    fresh = tuple(one for one in failures if likeness(one) not in before.failures)
    above = dict.fromkeys(one.case for one in failures if likeness(one) in before.failures)
    section = Section(
        name=name,
        status=status_of(report),
        headline=headline(report),
        alone=report.is_one_sided,
        sides=sides,
        reasons=reasons[:MOST_REASONS],
        more_reasons=len(reasons) - MOST_REASONS,
        shown=moved[:rows],
        more_shown=moved[rows:],
        tests=tests[:_MOST_TESTS],
        more_tests=len(tests) - _MOST_TESTS,
        modes=matrices[:_MOST_MATRICES],
        more_modes=len(matrices) - _MOST_MATRICES,
        shapes=by_shape[:_MOST_MATRICES],
        more_shapes=len(by_shape) - _MOST_MATRICES,
        explanations=new[:MOST_REASONS],
        more_explanations=new[MOST_REASONS:],
        whys=whys(report),
        explained_above=len(explanations) - len(new),
        failures=fresh[:_MOST_FAILURES],
        more_failures=fresh[_MOST_FAILURES:],
        failed_above=tuple(above),
        chart=chart(moved),
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


def _side(side: Side | None) -> str:
    if side is None:
        return "no baseline"
    short = side.sha[:12]
    text = side.rev if not short or short in side.rev else f"{side.rev} ({short})"
    return text + (" with uncommitted changes" if side.dirty else "")


MARKER = "<!-- perfci -->"
LIMIT = 60_000
"""GitHub takes 65,536 characters; the rest is for whoever adds a line."""
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")
_WORST_FIRST = ("fail", "error", "inconclusive", "pass", "run")


def render_markdown(report: Report, limit: int = LIMIT) -> str:
    """Return the comment, its first line ``MARKER``, at most ``limit`` characters long."""
    return render_comment((report,), limit)


def render_comment(reports: Sequence[Report], limit: int = LIMIT, head_sha: str = "") -> str:
    """Return one comment on several reports, one for each environment.

    Its first line is ``MARKER``, its second names ``head_sha`` where that is given. Raises
    UsageError where there is no report, or ``head_sha`` is not one.
    """
    if not reports:
        raise UsageError(
            "no-report", "there is no report to comment on", "Name the files that --json wrote."
        )
    if head_sha and not _SHA.fullmatch(head_sha):
        raise UsageError(
            "no-sha", f"{head_sha[:80]!r} is no commit's hash", "Give 7 to 64 hexadecimal digits."
        )
    return cut(tidy(_template().render(_context(tuple(reports), head_sha))), limit)


def markdown_environment() -> Environment:
    """Return the environment of Markdown templates: whatever isn't Markup is escaped."""
    environment = template_environment(
        # escaping is the rule and not a filter to remember: what isn't Markup is a stranger's,
        # and Markdown's escaping comes before HTML's, which then finds nothing left to do
        finalize=lambda value: value if isinstance(value, Markup) else escape(str(value)),
    )
    environment.filters |= {"code": code, "fence": fence, "unbroken": _unbroken}
    return environment


def _unbroken(text: str) -> Safe:
    """Return ``text`` escaped, on one line also in a narrow column: a number and its unit."""
    return Safe(escape(text).replace(" ", "\N{NO-BREAK SPACE}"))


@cache
def _template() -> Template:
    environment = markdown_environment()
    environment.globals |= {
        "change": rows.change_text,
        "interval": rows.interval_text,
        "side": rows.side_text,
        "side_interval": rows.side_interval,
        "note": rows.note,
        "detectable": rows.detectable_text,
        "unseen": unseen_text,
        "numbers": rows.has_numbers,
        "statistics": statistics,
        "mode_words": modes,
        "shape_words": shapes,
    }
    return environment.get_template("comment.md.j2")


def _context(reports: tuple[Report, ...], head_sha: str) -> dict[str, Any]:
    names = environment_names(reports)
    parts = sections(reports, names)
    several = len(reports) > 1
    reasons = shared_reasons(reports)
    said = "; ".join(f"{part.status} on {part.name}" for part in parts)
    return {
        "marker": Safe(MARKER),
        "head_marker": Safe(f"<!-- perfci head={head_sha} -->") if head_sha else "",
        "several": several,
        "status": _worst(reports) if several else parts[0].status,
        "headline": said if several else parts[0].headline,
        "warnings": tuple(
            dict.fromkeys(
                text
                for report in reports
                for text in (injected_text(report), part_text(report), same_code_text(report))
                if text
            )
        ),
        "reasons": reasons[:MOST_REASONS],
        "more_reasons": len(reasons) - MOST_REASONS,
        "sides": shared_sides(reports),
        "sections": parts,
        "spent": _spent(reports, names),
        "notes": _notes(reports, names),
        "tables": fact_tables(reports, names),
    }


def _worst(reports: Sequence[Report]) -> str:
    """Return the worst verdict's word: one environment's regression is the pull request's."""
    words = {"run" if report.is_one_sided else report.verdict.status for report in reports}
    worst = min(words, key=_WORST_FIRST.index)
    return f"{worst} (incomplete)" if any(report.shard for report in reports) else worst


def _spent(reports: Sequence[Report], names: Sequence[str]) -> str:
    """Return rounds and time: of several reports each one's, of one how much was measuring."""
    spent = [
        f"{counted(one.timing.rounds, 'round')} in {format_duration(one.timing.wall_s)}"
        for one in reports
    ]
    if len(reports) > 1:
        return "; ".join(f"{text} on {name}" for text, name in zip(spent, names, strict=True))
    timing = reports[0].timing
    share = round(timing.measured_s / timing.wall_s, 2) if timing.wall_s > 0 else None
    return f"{spent[0]}, {format_share(share)} of it measuring"


def _notes(reports: Sequence[Report], names: Sequence[str]) -> tuple[str, ...]:
    """Return every note once; one that not all of several reports have says whose it is."""
    found: dict[str, None] = {}
    for report, name in zip(reports, names, strict=True):
        for note in report.notes:
            everyones = all(note in other.notes for other in reports)
            found[note if everyones else f"{note} (on {name})"] = None
        if len(reports) > 1 and report.base_environment is not None:
            found[f"base was measured in {report.base_environment.key} (on {name})"] = None
        for line in ran_lines(report):
            found[line if len(reports) == 1 else f"{line} (on {name})"] = None
    return tuple(found)
