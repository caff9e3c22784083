"""What a comment says of each report: what moved stands open, all else is folded.

With several reports, one for each environment, nothing is said twice that they have in common.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfci.record.case import Failure
from perfci.record.report import Comparison, Explanation, Report
from perfci.record.run import Side
from perfci.report.chart import chart
from perfci.report.escape import Safe
from perfci.report.failures import likeness, shown_failures
from perfci.report.outline import Outline, headline, other_reasons, outline
from perfci.report.past import past_lines

MOST_REASONS = 5
_MOST_ROWS = 8
_FEWEST_ROWS = 4
_MOST_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Section:
    """One report's part of the comment. What is ``more_`` is folded.

    ``sides`` is empty where it is told once for all. ``explained_above`` counts explanations, and
    ``failed_above`` names cases, that an earlier section told alike.
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
    explanations: tuple[Explanation, ...]
    more_explanations: tuple[Explanation, ...]
    explained_above: int
    failures: tuple[Failure, ...]
    more_failures: tuple[Failure, ...]
    failed_above: tuple[str, ...]
    chart: Safe
    past: Mapping[tuple[str, str], str]
    found: Outline
    skipped: Mapping[str, str]
    not_measured: Mapping[str, str]

    @property
    def folded(self) -> str:
        """Return what the section's fold holds, nothing where there is none."""
        found = self.found
        parts: tuple[tuple[Collection[Any], str], ...] = (
            (self.more_shown, "more that moved"),
            (self.more_explanations, "more reasons why"),
            (self.more_failures, "more failed"),
            (found.undecided, "not decided"),
            (found.informative, "for information"),
            (found.not_comparable, "not comparable"),
            (() if self.alone else found.new, "new"),
            (found.removed, "removed"),
            (self.skipped, "skipped"),
            (self.not_measured, "not measured"),
            (found.unchanged, "unchanged"),
        )
        return ", ".join(f"{len(items)} {word}" for items, word in parts if items)


@dataclass(slots=True)
class _Told:
    """What the sections so far have told."""

    explanations: set[Explanation] = field(default_factory=set)
    failures: set[tuple[str, ...]] = field(default_factory=set)
    skipped: set[tuple[str, str]] = field(default_factory=set)
    not_measured: set[tuple[str, str]] = field(default_factory=set)


def sections(reports: Sequence[Report], names: Sequence[str]) -> tuple[Section, ...]:
    """Return the parts of the comment, in the order of ``reports``, each with its name."""
    told = _Told()
    said = frozenset(shared_reasons(reports))
    shared = shared_sides(reports)
    rows = max(_FEWEST_ROWS, _MOST_ROWS // len(reports))
    return tuple(
        _section(report, name, told, said, () if shared else sides_of(report), rows)
        for report, name in zip(reports, names, strict=True)
    )


def status_of(report: Report) -> str:
    """Return the verdict's word; a run alone has none, and a part isn't taken for the whole."""
    status = "run" if is_alone(report) else report.verdict.status
    return f"{status} (shard {report.shard} alone)" if report.shard else status


def is_alone(report: Report) -> bool:
    """Return whether one side was measured, with nothing to compare it with."""
    return report.base is None and report.command == "run"


def sides_of(report: Report) -> tuple[str, ...]:
    """Return what was compared, base first; of a run alone what was measured."""
    sides = (report.head,) if is_alone(report) else (report.base, report.head)
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
    told: _Told,
    said: Collection[str],
    sides: tuple[str, ...],
    rows: int,
) -> Section:
    failures = shown_failures(report)
    failed = {failure.case for failure in failures}
    found = outline(report)
    moved = tuple(row for row in found.moved if not (row.status == "failed" and row.case in failed))
    reasons = tuple(reason for reason in other_reasons(report) if reason not in said)
    explanations = dict.fromkeys(report.explanations)
    new = tuple(one for one in explanations if one not in told.explanations)
    fresh = tuple(one for one in failures if likeness(one) not in told.failures)
    above = dict.fromkeys(one.case for one in failures if likeness(one) in told.failures)
    section = Section(
        name=name,
        status=status_of(report),
        headline=headline(report),
        alone=is_alone(report),
        sides=sides,
        reasons=reasons[:MOST_REASONS],
        more_reasons=len(reasons) - MOST_REASONS,
        shown=moved[:rows],
        more_shown=moved[rows:],
        explanations=new[:MOST_REASONS],
        more_explanations=new[MOST_REASONS:],
        explained_above=len(explanations) - len(new),
        failures=fresh[:_MOST_FAILURES],
        more_failures=fresh[_MOST_FAILURES:],
        failed_above=tuple(above),
        chart=chart(moved),
        past=past_lines(report),
        found=found,
        skipped=dict(one for one in report.skipped.items() if one not in told.skipped),
        not_measured=dict(
            one for one in report.not_measured.items() if one not in told.not_measured
        ),
    )
    told.explanations |= set(report.explanations)
    told.failures |= {likeness(one) for one in failures}
    told.skipped |= set(report.skipped.items())
    told.not_measured |= set(report.not_measured.items())
    return section


def _side(side: Side | None) -> str:
    if side is None:
        return "no baseline"
    short = side.sha[:12]
    text = side.rev if not short or short in side.rev else f"{side.rev} ({short})"
    return text + (" with uncommitted changes" if side.dirty else "")
