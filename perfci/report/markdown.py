"""The pull-request comment: GitHub Markdown that is read in ten seconds."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from perfci.record.report import Report
from perfci.record.run import Side
from perfci.report import rows
from perfci.report.cutting import cut
from perfci.report.escape import Safe, code, escape, fence
from perfci.report.failures import shown_failures
from perfci.report.outline import headline, injected_text, other_reasons, outline
from perfci.report.templates import read_template
from perfci.units import counted, format_duration, format_share

MARKER = "<!-- perfci -->"
LIMIT = 60_000
"""GitHub takes 65,536 characters; the rest is for whoever adds a line."""
_SHOWN_FAILURES = 3
_SHOWN_REASONS = 5


def render_markdown(report: Report, limit: int = LIMIT) -> str:
    """Return the comment, its first line ``MARKER``, at most ``limit`` characters long."""
    environment = markdown_environment()
    environment.globals |= {
        "change": rows.change_text,
        "interval": rows.interval_text,
        "side": rows.side_text,
        "side_interval": rows.side_interval,
        "note": rows.note,
        "detectable": rows.detectable_text,
        "numbers": rows.has_numbers,
    }
    template = environment.from_string(read_template("comment.md.j2"))
    return cut(template.render(_context(report)), limit)


def markdown_environment() -> Environment:
    """Return the environment of Markdown templates: whatever isn't Markup is escaped."""
    environment = Environment(
        # escaping is the rule and not a filter to remember: what isn't Markup is a stranger's,
        # and Markdown's escaping comes before HTML's, which then finds nothing left to do
        finalize=lambda value: value if isinstance(value, Markup) else escape(str(value)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"code": code, "fence": fence}
    return environment


def _context(report: Report) -> dict[str, Any]:
    reasons = other_reasons(report)
    failures = shown_failures(report)
    timing = report.timing
    share = timing.measured_s / timing.wall_s if timing.wall_s > 0 else None
    return {
        "marker": Safe(MARKER),
        "report": report,
        "found": outline(report),
        "status": _status(report),
        "headline": headline(report),
        "injected": injected_text(report),
        "reasons": reasons[:_SHOWN_REASONS],
        "more_reasons": len(reasons) - _SHOWN_REASONS,
        "alone": report.base is None and report.command == "run",
        "base": _side(report.base),
        "head": _side(report.head),
        "first_failures": failures[:_SHOWN_FAILURES],
        "more_failures": failures[_SHOWN_FAILURES:],
        "took": format_duration(timing.wall_s),
        "share": format_share(round(share, 2) if share is not None else None),
        "rounds": counted(timing.rounds, "round"),
        "facts": _facts(report),
        "two_environments": report.base_environment is not None,
    }


def _status(report: Report) -> str:
    return report.verdict.status if report.base or report.command != "run" else "run"


def _side(side: Side | None) -> str:
    if side is None:
        return "no baseline"
    short = side.sha[:12]
    text = side.rev if not short or short in side.rev else f"{side.rev} ({short})"
    return text + (" with uncommitted changes" if side.dirty else "")


def _facts(report: Report) -> tuple[tuple[str, str, str], ...]:
    """Return each fact: its name, head's value, and base's where that differs."""
    head = report.environment.facts
    base = report.base_environment.facts if report.base_environment else head
    return tuple(
        (name, head.get(name, "–"), "" if base.get(name) == head.get(name) else base.get(name, "–"))
        for name in sorted(head.keys() | base.keys())
    )
