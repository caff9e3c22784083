"""The pull-request comment: GitHub Markdown that is read in ten seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, Template
from markupsafe import Markup

from perfci.errors import UsageError
from perfci.model.report import Report
from perfci.report import comment_rows, modes, rows, shapes
from perfci.report.clean import Safe, code, escape, fence, sentences
from perfci.report.links import NO_LINKS, Links, environment_names, fact_tables
from perfci.report.outline import injected_text, part_text, ran_lines, same_code_text, unseen_text
from perfci.report.sections import (
    MOST_FOLDED_FAILURES,
    MOST_REASONS,
    MOST_TABLE_ROWS,
    mark_of,
    sections,
    shared_reasons,
    shared_sides,
    status_of,
)
from perfci.report.templates import template_environment
from perfci.units import counted, format_duration, format_share

MARKER = "<!-- perfci -->"
LIMIT = 60_000
"""GitHub takes 65,536 characters; the rest is for whoever adds a line."""
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")
_ENDS = re.compile(r"(?:[,=./_-]|&#91;)(?=\w)")
"""No entity has any of these in its middle."""
_BREAK_HERE = r"\g<0><wbr>"
_WORST_FIRST = ("fail", "error", "inconclusive", "pass", "run")
_FENCE = re.compile(r"(`{3,})")
_SEPARATOR = re.compile(r"\|(:?-+:?\|)+$")
_ROOM = 400
"""For what closes fences and details, and the note."""


def render_markdown(report: Report, limit: int = LIMIT) -> str:
    """Return the comment, its first line ``MARKER``, at most ``limit`` characters long."""
    return render_comment((report,), limit)


def render_comment(
    reports: Sequence[Report], limit: int = LIMIT, head_sha: str = "", links: Links = NO_LINKS
) -> str:
    """Return one comment on several reports, one for each environment.

    Its first line is ``MARKER``, its second names ``head_sha`` where that is given; commits and
    lines of code that ``links`` knows are links. Raises UsageError where there is no report, or
    ``head_sha`` is not one.
    """
    if not reports:
        raise UsageError(
            "no-report", "there is no report to comment on", "Name the files that --json wrote."
        )
    if head_sha and not _SHA.fullmatch(head_sha):
        raise UsageError(
            "no-sha", f"{head_sha[:80]!r} is no commit's hash", "Give 7 to 64 hexadecimal digits."
        )
    context = _context(tuple(reports), head_sha, links)
    left_out = sum(section.left_out for section in context["sections"])
    return cut(tidy(_template().render(context)), limit, left_out)


def markdown_environment() -> Environment:
    """Return the environment of Markdown templates: whatever isn't Markup is escaped."""
    environment = template_environment(
        # escaping is the rule and not a filter to remember: what isn't Markup is a stranger's,
        # and Markdown's escaping comes before HTML's, which then finds nothing left to do
        finalize=lambda value: value if isinstance(value, Markup) else escape(str(value)),
    )
    environment.filters |= {
        "code": code,
        "fence": fence,
        "sentences": sentences,
        "unbroken": _unbroken,
        "breakable": _breakable,
    }
    return environment


def _unbroken(text: str) -> Safe:
    """Return ``text`` escaped, on one line also in a narrow column: a number and its unit."""
    return Safe(escape(text).replace(" ", "\N{NO-BREAK SPACE}"))


def _breakable(text: str) -> Safe:
    """Return ``text`` in code that a narrow column may break where its words end."""
    return Safe(f"<code>{_ENDS.sub(_BREAK_HERE, str(escape(text)))}</code>") if text else Safe("")


@cache
def _template() -> Template:
    environment = markdown_environment()
    environment.globals |= {
        "change": comment_rows.moved_text,
        "what": comment_rows.metric_words,
        "values": comment_rows.values_text,
        "limit": comment_rows.limit_text,
        "remarks": comment_rows.remarks,
        "span": comment_rows.span_text,
        "side_value": rows.side_text,
        "side_interval": rows.side_interval,
        "note": rows.note,
        "unseen": unseen_text,
        "numbers": rows.has_numbers,
        "most": MOST_TABLE_ROWS,
        "most_failures": MOST_FOLDED_FAILURES,
        "statistics": rows,
        "mode_words": modes,
        "shape_words": shapes,
    }
    return environment.get_template("comment.md.j2")


def _context(reports: tuple[Report, ...], head_sha: str, links: Links) -> dict[str, Any]:
    names = environment_names(reports)
    parts = sections(reports, names)
    several = len(reports) > 1
    reasons = shared_reasons(reports)
    worst = _worst(reports)
    return {
        "marker": Safe(MARKER),
        "head_marker": Safe(f"<!-- perfci head={head_sha} -->") if head_sha else "",
        "links": links,
        "several": several,
        "mark": mark_of(worst, part=any(one.shard for one in reports))
        if several
        else parts[0].mark,
        "title": _of_several(reports, names) if several else parts[0].title,
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


def _of_several(reports: Sequence[Report], names: Sequence[str]) -> str:
    """Return each environment's verdict in one line; what lacks a shard says so first."""
    part = "incomplete: " if any(report.shard for report in reports) else ""
    said = (f"{status_of(one)} on {name}" for one, name in zip(reports, names, strict=True))
    return part + "; ".join(said)


def _worst(reports: Sequence[Report]) -> str:
    """Return the worst verdict's word: one environment's regression is the pull request's."""
    words = {"run" if report.is_one_sided else report.verdict.status for report in reports}
    return min(words, key=_WORST_FIRST.index)


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


@dataclass(frozen=True, slots=True)
class _Open:
    """What is open after a line: the fence's backticks, the depth of details, rows so far."""

    fence: str = ""
    details: int = 0
    rows: int = 0

    def after(self, line: str) -> _Open:
        mark = _FENCE.match(line)
        if self.fence:
            closes = mark is not None and line.rstrip() == self.fence
            return _Open("" if closes else self.fence, self.details, self.rows)
        if mark is not None:
            return _Open(mark[1], self.details, self.rows)
        rows = self.rows
        if line.startswith("|"):
            rows += -1 if _SEPARATOR.match(line) else 1  # a separator takes its header back
        depth = self.details + line.count("<details>") - line.count("</details>")
        return _Open("", depth, rows)


def cut(text: str, limit: int, left_out: int = 0) -> str:
    """Return ``text`` if it has at most ``limit`` characters, else as many lines as fit.

    A note at the end says how many table rows were left out, ``left_out`` of them before.
    """
    if len(text) <= limit and not left_out:
        return text
    kept: list[str] = []
    length = 0
    state = _Open()
    lines = text.split("\n")
    for line in lines:
        length += len(line) + 1
        following = state.after(line)
        if length + len("</details>\n") * following.details + _ROOM > limit:
            break
        kept.append(line)
        state = following
    if len(kept) < len(lines) and _SEPARATOR.match(lines[len(kept)]):
        state = _Open(state.fence, state.details, state.rows - 1)
        kept.pop()  # a header without its separator would show as text
    return "\n".join([*kept, *_closing(state), _note(_rows(lines) + left_out - state.rows), ""])


def tidy(text: str) -> str:
    """Return ``text`` without a second blank line in a row; what stands in a fence is left."""
    kept: list[str] = []
    state = _Open()
    for line in text.split("\n"):
        if line or state.fence or (kept and kept[-1]):
            kept.append(line)
        state = state.after(line)
    return "\n".join(kept).strip("\n") + "\n"


def _closing(state: _Open) -> list[str]:
    fence = [state.fence] if state.fence else []
    return [*fence, "", *["</details>"] * state.details, ""]


def _rows(lines: Sequence[str]) -> int:
    state = _Open()
    for line in lines:
        state = state.after(line)
    return state.rows


def _note(rows: int) -> str:
    left_out = f"{rows} table row{'' if rows == 1 else 's'} and " if rows else ""
    return f"_Cut to fit: {left_out}the rest of this report left out; the JSON report has all._"
