"""Pure: what the issues of a trend's regressions say, and what has to be written for that.

One issue a new regression; beyond ``MOST`` in one report, one issue for all the others. An issue
is written anew while it is open. When its regression is fixed or acknowledged it says so and is
closed, in one write, so that neither can happen twice. A closed issue is never touched again:
whoever closes one by hand, or opens one again, has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from perfci.publish.github.event import SHA
from perfci.publish.github.issue import MOST_IDS, Close, Content, Issue, mark_of, ours, rewritten
from perfci.render.clean import clean_line
from perfci.render.escape import code, escape
from perfci.render.site.words import SAME_COMMIT, ratio_text, short, size_text
from perfci.trend.change import Change, Trend
from perfci.trend.timeline.series import SeriesKey
from perfci.units import counted

MOST = 10
"""New issues a report: more in one run are one event, and nobody's inbox."""
_LONGEST_TABLE = 10_000
"""Characters, so that an issue's 65,536 hold it beside the marks."""
_COLUMNS = ("| case | metric | change | since | status | on |", "|---|---|---|---|---|---|")
_LONGEST_TITLE = 200
_MOST_IN_TITLE = 256
_IN_TITLE = re.compile(r"(?<=@)(?=\S)|(?<=#)(?=\d)|(?<=:)(?=[\w+-]+:)|(?<=:)(?=//)")
_OPEN = {"new", "known"}


@dataclass(frozen=True, slots=True)
class Step:
    """One write: open an issue (``issue`` is None), or give ``issue`` the text ``body``."""

    content: Content
    body: str
    issue: Issue | None = None


def openings(
    trend: Trend, issues: Sequence[Issue], author: str, most: int = MOST
) -> tuple[tuple[str, ...], ...]:
    """Return the marks of each issue that is to be opened, for new regressions that have none."""
    known = ours(issues, author)
    missing = [mark for mark, one in _worse(trend).items() if one.status == "new"]
    missing = [mark for mark in missing if mark not in known]
    rest = missing[most : most + MOST_IDS]
    return (*((mark,) for mark in missing[:most]), *([tuple(rest)] if rest else []))


def steps(
    trend: Trend,
    issues: Sequence[Issue],
    author: str,
    wanted: Sequence[tuple[str, ...]],
    report_url: str = "",
) -> tuple[Step, ...]:
    """Return the writes that are left to do: of ``author``'s open issues, then of ``wanted``."""
    known = ours(issues, author)
    worse = _worse(trend)
    units = {one.key: one.unit for one in trend.series}
    subjects = {run.sha: run.subject for line in trend.timelines.values() for run in line.runs}
    written = _Writing(units, subjects, report_url)
    found = []
    by_issue = sorted(known.items(), key=lambda item: item[1].number)
    for issue, marked in groupby(by_issue, key=lambda item: item[1]):
        marks = tuple(mark for mark, _ in marked)
        changes = [worse[mark] for mark in marks if mark in worse]
        if not issue.open or not changes:
            continue  # somebody closed it, or its series are gone
        content = written.content(marks, changes)
        body = rewritten(issue, content)
        if body is not None:
            found.append(Step(content, body, issue))
    for marks in wanted:
        if not known.keys() & set(marks):
            content = written.content(marks, [worse[mark] for mark in marks])
            found.append(Step(content, content.body))
    return tuple(found)


def _worse(trend: Trend) -> dict[str, Change]:
    return {mark_of(one.id): one for one in trend.changes if one.worse}


@dataclass(frozen=True, slots=True)
class _Writing:
    """Writes issues' texts; what a text needs besides its changes."""

    units: dict[SeriesKey, str]
    subjects: dict[str, str]
    report_url: str

    def content(self, marks: tuple[str, ...], changes: Sequence[Change]) -> Content:
        alone = len(marks) == 1
        title = _title(changes[0]) if alone else _title_of_many(marks, changes[0])
        text = self._text(changes[0]) if alone else self._text_of_many(marks, changes)
        return Content(marks, title, text + self._foot(changes), _close(changes))

    def _text(self, change: Change) -> str:
        rows = [
            ("on", code(change.series.environment)),
            *self._where(change),
            ("how", "slowly, over many commits" if change.kind == "ramp" else "in one step"),
            ("false-discovery rate", f"{change.q:.1g} over the whole report"),
        ]
        what = f"{code(change.series.case)} {code(change.series.metric)}"
        lines = [
            f"{what} got worse: **{self._size(change)}**",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in rows if value),
        ]
        if change.benchmark_changed:
            lines += ["", "The benchmark's own source changed there, too: it may be that."]
        lines += ["", *_ending(change)]
        return "\n".join(lines)

    def _where(self, change: Change) -> Sequence[tuple[str, str]]:
        before, after = map(_commit, change.commits)
        if change.same_commit:
            return (("at", f"{after} ({SAME_COMMIT})"),)
        subject = escape(self.subjects.get(change.commits[1], ""), 200)
        where = [("between", f"{before} and {after}"), ("last commit", subject)]
        if change.commits_within != change.commits:
            first, last = map(_commit, change.commits_within)
            where.append(("with 95 % confidence between", f"{first} and {last}"))
        return where

    def _text_of_many(self, marks: tuple[str, ...], changes: Sequence[Change]) -> str:
        rows: list[str] = []
        left = _LONGEST_TABLE
        for one in changes:
            row = self._row(one)
            left -= len(row) + 1
            if left < 0:
                break
            rows.append(row)
        rest = len(changes) - len(rows)
        first = f"{counted(len(marks), 'more regression')} came in one report"
        lines = [f"{first}, too many for an issue each.", "", *_COLUMNS, *rows]
        return "\n".join([*lines, *(["", f"…and {rest} more."] if rest else [])])

    def _row(self, one: Change) -> str:
        cells = (
            code(one.series.case, 120),
            code(one.series.metric, 60),
            self._size(one),
            _commit(one.commits[1]),
            "open" if one.status in _OPEN else one.status,
            code(one.series.environment, 100),
        )
        return f"| {' | '.join(cells)} |"

    def _size(self, change: Change) -> str:
        return escape(size_text(change, self.units.get(change.series, "")), 80)

    def _foot(self, changes: Sequence[Change]) -> str:
        lines = []
        if self.report_url:
            lines.append(f"[The whole report]({self.report_url})")
        if _close(changes) == "":
            lines.append(
                "perfci closes this when it is fixed or acknowledged. What you write below this "
                "line stays."
            )
        return "".join(f"\n\n{line}" for line in lines)


def _title(change: Change) -> str:
    size = "" if change.ratio is None else f" by {ratio_text(change.ratio)}"
    said = f"{clean_line(change.series.case, 120)} {clean_line(change.series.metric, 40)}"
    return _as_title(f"{said} got worse{size}")


def _title_of_many(marks: tuple[str, ...], first: Change) -> str:
    since = f" since {short(first.commits[1])}" if first.commits[1] else ""
    return _as_title(f"{counted(len(marks), 'more regression')}{since}")


def _as_title(text: str) -> str:
    """Plain text, in which GitHub still looks for references, emoji and code."""
    line = clean_line(f"perfci: {text}", _LONGEST_TITLE).replace("`", "'")
    return _IN_TITLE.sub("\u200b", line)[:_MOST_IN_TITLE]


def _ending(change: Change) -> Sequence[str]:
    if change.status == "fixed":
        return ("**Fixed**: the old level is back.",)
    if change.status == "acknowledged":
        note = f": {escape(change.note, 500)}" if change.note else "."
        return (f"**Acknowledged**{note}",)
    asked = f"perfci history acknowledge {change.id} --note '…'"
    return (f"Meant? Then say so: {code(asked)}",)


def _close(changes: Sequence[Change]) -> Close:
    if any(one.status in _OPEN for one in changes):
        return ""
    return "completed" if any(one.status == "fixed" for one in changes) else "not_planned"


def _commit(sha: str) -> str:
    """A whole SHA becomes a link where the repository has it; anything else is text."""
    return sha if SHA.fullmatch(sha) else code(sha, 60) or "an unknown commit"
