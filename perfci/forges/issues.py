"""Issues of a trend's regressions: what they say, and how they are brought to say it.

There is one issue per new event that made something worse, and beyond ``MOST`` in one report one
issue for all others. The text up to the end mark is rewritten while the issue is open. What people
add below it stays. When its regressions are fixed or acknowledged, the issue says so and is closed,
in one write, so that neither can happen twice. A closed issue is never touched again: people
who close or reopen an issue by hand have the last word.

As for comments (see ``posting``), no write is repeated as such. What was written is remembered,
because GitHub's lists may lag behind.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from statistics import median

from perfci.forges.base import SHA, User
from perfci.forges.github import Close, GitHubClient, Issue, IssueContent
from perfci.forges.posting import PostOutcome
from perfci.forges.rest import Refused
from perfci.report.clean import clean_line, code, escape
from perfci.report.site.words import (
    SAME_COMMIT,
    event_size,
    event_text,
    names_text,
    ratio_text,
    short,
    size_text,
)
from perfci.trend import Change, Trend, TrendEvent
from perfci.units import counted

MOST = 10
"""New issues per report. No one reads more."""
_LONGEST_BODY = 65_536
"""Characters of an issue's text, by GitHub's limit."""
_MOST_IDS = 3000
"""Most ids in an issue's mark. Each takes at most 17 of the ``_LONGEST_BODY`` characters."""
_BEGIN = "<!-- perfci-changes:"
_END = "<!-- /perfci-changes -->"
"""The marks around the text that perfci rewrites. The first holds the ids."""
_MARK = re.compile(re.escape(_BEGIN) + r"(?P<ids>[0-9A-Za-z_. -]*) -->\n")
_PLAIN = re.compile(r"[0-9A-Za-z_.][0-9A-Za-z_.-]{0,15}")
"""An id that can stand in a mark as it is."""
_LONGEST_TABLE = 10_000
"""Characters of a table. An issue's 65,536 must have room for the marks, too."""
_SERIES = ("| case | metric | change | status |", "|---|---|---|---|")
_EVENTS = ("| what | change | since | status | on |", "|---|---|---|---|---|")
"""The heads of the tables of series and of events."""
_MOST_NAMES = 3
"""Benchmarks that are named of an event. The others are counted."""
_LONGEST_TITLE = 200
"""Characters of a title before ``_IN_TITLE`` is broken."""
_MOST_IN_TITLE = 256
"""Characters of a title, by GitHub's limit."""
_IN_TITLE = re.compile(r"(?<=@)(?=\S)|(?<=#)(?=\d)|(?<=:)(?=[\w+-]+:)|(?<=:)(?=//)")
"""Where a title could hold a mention, a reference, an emoji or a link."""
_OPEN = {"new", "known"}
"""The statuses of an open change."""


def openings(
    trend: Trend, issues: Sequence[Issue], author: str, most: int = MOST
) -> tuple[tuple[str, ...], ...]:
    """Return the marks of each issue to open, for new regressions that have no issue yet.

    The first ``most`` regressions get an issue each. The others share one.
    """
    known = ours(issues, author)
    missing = [
        mark_of(event.id)
        for event in trend.events
        if event.news and _worse(event) and mark_of(event.id) not in known
    ]
    rest = missing[most : most + _MOST_IDS]
    return (*((mark,) for mark in missing[:most]), *([tuple(rest)] if rest else []))


def steps(
    trend: Trend,
    issues: Sequence[Issue],
    author: str,
    wanted: Sequence[tuple[str, ...]],
    report_url: str = "",
) -> Iterator[tuple[Issue | None, IssueContent]]:
    """Yield what is left to write: to ``author``'s open issues, then to new ones of ``wanted``."""
    known = ours(issues, author)
    by_mark = {mark_of(event.id): event for event in trend.events if _worse(event)}
    written = _IssueTexts(trend, report_url)
    by_issue = sorted(known.items(), key=lambda item: item[1].number)
    for issue, marked in groupby(by_issue, key=lambda item: item[1]):
        marks = tuple(mark for mark, _ in marked)
        events = [by_mark[mark] for mark in marks if mark in by_mark]
        if issue.state != "open" or not events:
            continue  # it was closed by hand, or its series are gone
        content = written.content(marks, events)
        body = rewritten(issue, content)
        if body is not None:
            yield issue, replace(content, body=body)
    for marks in wanted:
        if known.keys().isdisjoint(marks):
            yield None, written.content(marks, [by_mark[mark] for mark in marks])


def _worse(event: TrendEvent) -> tuple[Change, ...]:
    """Return the changes of ``event`` that made something worse."""
    return tuple(change for change in event.changes if change.worse)


class _IssueTexts:
    """Writes issues' texts, of events and of what is known of their series and commits."""

    def __init__(self, trend: Trend, report_url: str) -> None:
        self._units = {series.key: series.unit for series in trend.series}
        runs = [run for line in trend.timelines.values() for run in line.runs]
        self._subjects = {run.sha: escape(run.subject, 200) for run in runs}
        self._report_url = report_url

    def content(self, marks: tuple[str, ...], events: Sequence[TrendEvent]) -> IssueContent:
        changes = [change for event in events for change in _worse(event)]
        if len(events) > 1:
            title, text = _title_of_many(marks, events[0]), self._text_of_many(events)
        elif len(events[0].changes) == 1:
            title, text = _title(changes[0]), self._text(changes[0])
        else:
            title, text = _title_of_event(events[0]), self._text_of_event(events[0])
        whole = ("\n".join(text) + self._foot(changes)).strip()
        body = f"{_BEGIN} {' '.join(marks)} -->\n{whole}\n{_END}\n"
        return IssueContent(title, body, _close(changes))

    def _text_of_event(self, event: TrendEvent) -> Sequence[str]:
        changes = _worse(event)
        before, after = map(_commit, event.commits)
        same = event.commits[0] == event.commits[1]
        rows = [
            ("on", code(event.environment)),
            ("at" if same else "between", after if same else f"{before} and {after}"),
            ("last commit", "" if same else self._subjects.get(event.commits[1], "")),
            ("what it is", escape(event_text(event), 300)),
        ]
        of = counted(len(event.benchmarks), "benchmark")
        moved = f"{len(changes):,} of {event.measured:,} series got worse, of {of}"
        lines = [*_facts(f"{moved}: **{escape(event_size(event), 80)}**", rows)]
        if any(change.benchmark_changed for change in changes):
            lines += ["", "The source of some benchmark changed there, too: it may be that."]
        lines += ["", *_ending(changes, event.id), "", "<details><summary>Each series</summary>"]
        rows_of_series = [
            _row(*_names(change), self._size(change), _state((change,))) for change in changes
        ]
        return (*lines, "", *_table(_SERIES, rows_of_series), "", "</details>")

    def _text(self, change: Change) -> Sequence[str]:
        rows = [
            ("on", code(change.series.environment)),
            *self._where(change),
            ("how", "slowly, over many commits" if change.kind == "ramp" else "in one step"),
            ("false-discovery rate", f"{change.q:.1g} over the whole report"),
        ]
        what = f"{code(change.series.case)} {code(change.series.metric)}"
        lines = [*_facts(f"{what} got worse: **{self._size(change)}**", rows)]
        if change.benchmark_changed:
            lines += ["", "The benchmark's own source changed there, too: it may be that."]
        return (*lines, "", *_ending((change,), change.id))

    def _where(self, change: Change) -> Sequence[tuple[str, str]]:
        before, after = map(_commit, change.commits)
        if change.same_commit:
            return (("at", f"{after} ({SAME_COMMIT})"),)
        subject = self._subjects.get(change.commits[1], "")
        where = [("between", f"{before} and {after}"), ("last commit", subject)]
        if change.commits_within != change.commits:
            first, last = map(_commit, change.commits_within)
            where.append(("with 95 % confidence between", f"{first} and {last}"))
        return where

    def _text_of_many(self, events: Sequence[TrendEvent]) -> Sequence[str]:
        first = f"{counted(len(events), 'more regression')} came in one report"
        rows = [self._event_row(event) for event in events]
        return (f"{first}, too many for an issue each.", "", *_table(_EVENTS, rows))

    def _event_row(self, event: TrendEvent) -> str:
        alone = len(event.changes) == 1
        what = names_text(event.benchmarks, _MOST_NAMES, code)
        return _row(
            " ".join(_names(event.changes[0])) if alone else what,
            self._size(event.changes[0]) if alone else escape(event_size(event), 80),
            _commit(event.commits[1]),
            _state(_worse(event)),
            code(event.environment, 100),
        )

    def _size(self, change: Change) -> str:
        return escape(size_text(change, self._units.get(change.series, "")), 80)

    def _foot(self, changes: Sequence[Change]) -> str:
        lines = []
        if self._report_url:
            lines.append(f"[The whole report]({self._report_url})")
        if _close(changes) == "":
            lines.append(
                "perfci closes this when it is fixed or acknowledged. What you write below this "
                "line stays."
            )
        return "".join(f"\n\n{line}" for line in lines)


def _facts(first: str, rows: Sequence[tuple[str, str]]) -> Sequence[str]:
    shown = [_row(name, value) for name, value in rows if value]
    return (first, "", "| | |", "|---|---|", *shown)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _names(change: Change) -> tuple[str, str]:
    return code(change.series.case, 120), code(change.series.metric, 60)


def _title(change: Change) -> str:
    size = "" if change.ratio is None else f" by {ratio_text(change.ratio)}"
    series = f"{clean_line(change.series.case, 120)} {clean_line(change.series.metric, 40)}"
    return _as_title(f"{series} got worse{size}")


def _title_of_event(event: TrendEvent) -> str:
    size = f" by {ratio_text(median(event.costs))}" if event.costs else ""
    names = names_text(event.benchmarks, _MOST_NAMES, lambda name: clean_line(name, 60))
    return _as_title(f"{event.series:,} series of {names} got worse{size}")


def _title_of_many(marks: tuple[str, ...], first: TrendEvent) -> str:
    since = f" since {short(first.commits[1])}" if first.commits[1] else ""
    return _as_title(f"{counted(len(marks), 'more regression')}{since}")


def _table(columns: tuple[str, str], rows: Sequence[str]) -> Sequence[str]:
    """Return the table. A long one is cut, and says how many rows are left out."""
    ends = accumulate(len(row) + 1 for row in rows)
    kept = rows[: sum(end <= _LONGEST_TABLE for end in ends)]
    rest = len(rows) - len(kept)
    return (*columns, *kept, *(("", f"…and {rest} more.") if rest else ()))


def _as_title(text: str) -> str:
    """Return a title without the references, emoji and code that GitHub would see in it."""
    line = clean_line(f"perfci: {text}", _LONGEST_TITLE).replace("`", "'")
    return _IN_TITLE.sub("\u200b", line)[:_MOST_IN_TITLE]


def _state(changes: Sequence[Change]) -> str:
    ended = sorted({change.status for change in changes} - _OPEN)
    return "open" if any(change.status in _OPEN for change in changes) else " and ".join(ended)


def _ending(changes: Sequence[Change], id_: str) -> Sequence[str]:
    close = _close(changes)
    note = next((change.note for change in changes if change.note), "")
    noted = f": {escape(note, 500)}" if note else "."
    if close == "completed":
        return ("**Fixed**: the old level is back.",)
    if close == "not_planned":
        return (f"**Acknowledged**{noted}",)
    command = f"perfci history acknowledge {id_} --note '…'"
    return (f"Meant? Then say so: {code(command)}",)


def _close(changes: Sequence[Change]) -> Close:
    if any(change.status in _OPEN for change in changes):
        return ""
    return "completed" if any(change.status == "fixed" for change in changes) else "not_planned"


def _commit(sha: str) -> str:
    """Return a commit's text. GitHub links a whole SHA if the repository has it."""
    return sha if SHA.fullmatch(sha) else code(sha, 60) or "an unknown commit"


def tell_issues(
    client: GitHubClient,
    trend: Trend,
    author: str,
    *,
    report_url: str = "",
    most: int = MOST,
) -> tuple[PostOutcome, ...]:
    """Open, update and close ``author``'s issues. Return each outcome, or a refusal by GitHub."""
    wanted: tuple[tuple[str, ...], ...] | None = None
    done: dict[int, Issue] = {}
    outcomes: list[PostOutcome] = []

    def look_and_write() -> None:
        nonlocal wanted
        listed = client.issues(author)
        if wanted is None:  # once: another count would open ``most`` more
            wanted = openings(trend, listed, author, most)
        known = {issue.number: issue for issue in listed} | done
        for old, content in steps(trend, tuple(known.values()), author, wanted, report_url):
            issue = client.update_issue(old, content) if old else client.create_issue(content)
            word = "opened" if old is None else "updated" if issue.state == "open" else "closed"
            done[issue.number] = issue
            outcomes.append(PostOutcome("posted", clean_line(f"issue {word}: {issue.html_url}")))

    try:
        client.retry(look_and_write)
    except Refused as failure:
        outcomes.append(PostOutcome("refused", failure.message))
    return tuple(outcomes)


def mark_of(change_id: str) -> str:
    """Return an id as it may stand in a mark. An id that could end the mark is hashed."""
    if _PLAIN.fullmatch(change_id) and "--" not in change_id:
        return change_id
    return hashlib.sha256(change_id.encode("utf-8", "replace")).hexdigest()[:16]


def marks_in(issue: Issue, author: str) -> tuple[str, ...]:
    """Return the marks of an issue. Empty unless it is by ``author``: anyone can write marks."""
    mark = _MARK.match((issue.body or "").replace("\r\n", "\n"))
    if mark is None or not User.is_named(issue.user, author):
        return ()
    return tuple(mark["ids"].split())


def rewritten(issue: Issue, content: IssueContent) -> str | None:
    """Return the issue's new text, or None if nothing changes or the text is too long.

    What people wrote below the end mark is kept.
    """
    old = (issue.body or "").replace("\r\n", "\n")
    _, end, below = old.partition(_END)
    added = below.strip("\n")
    body = f"{content.body}\n{added}\n" if end and added else content.body
    return None if body.rstrip() == old.rstrip() or len(body) > _LONGEST_BODY else body


def ours(issues: Sequence[Issue], author: str) -> dict[str, Issue]:
    """Return each mark's issue. If two issues have the mark, the oldest counts."""
    by_mark: dict[str, Issue] = {}
    for issue in sorted(issues, key=lambda issue: issue.number):
        for mark in marks_in(issue, author):
            by_mark.setdefault(mark, issue)
    return by_mark
