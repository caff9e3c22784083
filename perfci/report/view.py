"""A report as all formats for people show it. Each format lays it out, and escapes the texts."""

from __future__ import annotations

from functools import cached_property

from perfci.model.report import Report
from perfci.model.run import Side
from perfci.report.headline import headline, reasons
from perfci.report.modes import ModeTable, mode_tables
from perfci.report.outline import Outline
from perfci.report.why import CaseWhy, whys
from perfci.units import counted, format_duration, format_share

_MARKS = {"fail": "\u274c", "error": "\U0001f4a5", "inconclusive": "\u2754", "pass": "\u2705"}
WORST_FIRST = ("fail", "error", "inconclusive", "pass", "run")


class ReportView(Outline):
    """The rows in groups, and everything around them in words."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.headline = headline(self)
        self.reasons = reasons(self)

    @property
    def word(self) -> str:
        """The verdict's word, or ``run`` for a report that compares nothing."""
        return "run" if self.report.is_one_sided else self.report.verdict.status

    @property
    def part(self) -> str:
        """Says in brackets that this is one shard of a report, or is empty."""
        return f" (shard {self.report.shard} alone)" if self.report.shard else ""

    @property
    def status(self) -> str:
        """The verdict's word, with the shard if this is one shard of a report."""
        return f"{self.word}{self.part}"

    @property
    def title(self) -> str:
        """The headline, with the shard if this is one shard of a report."""
        return f"{self.headline}{self.part}"

    @property
    def mark(self) -> str:
        """The emoji before the verdict, empty for a run. A shard that passes gets no pass mark."""
        return mark_of(self.word, part=bool(self.part))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of reports that must not be taken for a whole, honest measurement."""
        report, found = self.report, []
        if report.injected:
            shares = ((name, format_share(share)) for name, share in report.injected.items())
            made = ", ".join(f"{name} +{share}" for name, share in shares)
            found.append(
                f"injected into head on purpose: {made}; this tests the gate, not the code"
            )
        if report.shard:
            found.append(
                f"shard {report.shard} alone: other cases were measured elsewhere, "
                "`perfci merge` joins all"
            )
        return tuple(found)

    @property
    def sides(self) -> tuple[Side | None, ...]:
        """The compared sides, base first; for a run alone the measured side."""
        report = self.report
        return (report.head,) if report.is_one_sided else (report.base, report.head)

    @cached_property
    def whys(self) -> tuple[CaseWhy, ...]:
        """Why cases moved."""
        return whys(self.report)

    def modes(self, *, every: bool = False) -> tuple[ModeTable, ...]:
        """Return the tables of modes. A comparison has only changed ones, unless ``every``."""
        every = every or self.report.is_one_sided
        return tuple(table for table in mode_tables(self.report.results) if table.changed or every)

    @property
    def rounds(self) -> str:
        """How many rounds were measured, in which time."""
        timing = self.report.timing
        return f"{counted(timing.rounds, 'round')} in {format_duration(timing.wall_s)}"

    @property
    def spent(self) -> str:
        """The rounds and the time, and the share of measuring."""
        timing = self.report.timing
        if timing.wall_s <= 0:
            return self.rounds
        share = format_share(round(timing.measured_s / timing.wall_s, 2))
        return f"{self.rounds}, {share} of it measuring"


def mark_of(word: str, *, part: bool = False) -> str:
    """Return the emoji before a verdict, or "" for a run. A part that passes gets no pass mark."""
    return _MARKS.get("inconclusive" if part and word == "pass" else word, "")


def side_words(side: Side | None) -> str:
    """Return a compared side in words."""
    if side is None:
        return "no baseline"
    short = side.sha[:12]
    text = side.rev if not short or short in side.rev else f"{side.rev} ({short})"
    return text + (" with uncommitted changes" if side.dirty else "")
