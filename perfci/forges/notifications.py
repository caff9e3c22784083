"""The recipients of a trend's news: GitHub issues, and messages to any service of apprise.

There is one issue per new event that made something worse, up to ``MOST`` in one report. The text
up to the end mark is rewritten while the issue is open. What people add below it stays. When its
regressions are fixed or acknowledged, the issue says so and is closed, in one write, so that
neither can happen twice. A closed issue is never touched again: people who close or reopen an issue
by hand have the last word. As for comments (see ``posting``), no write is repeated as such.

Messages are plain text. Strangers' names in them can't mention anyone, and can't link. Addresses
hold secrets, and are shown nowhere.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal

from perfci.errors import OutsideError, UsageError, extra_advice
from perfci.forges import actions
from perfci.forges.github import GitHubClient, Issue, IssueContent, Refused
from perfci.outputs import Say
from perfci.report.clean import clean_line, code, escape, unlinked
from perfci.report.site.lists import TrendRows, catalogue, row_text, standings
from perfci.report.site.words import event_size, event_text, facts, news_of, news_title, size_text
from perfci.trend import Change, SeriesKey, Trend, TrendEvent
from perfci.units import counted, first_of, listed

_ADDRESS = re.compile(r"https?://[A-Za-z0-9][^\s()<>|`\"\\]{0,1000}")
"""A web address that is safe to link as it is."""
_MOST_SHOWN = 20
"""Events with a line each. The others are counted."""
_LONGEST_LINE = 400
MOST = 20
"""New issues per report. No one reads more."""
_LONGEST_BODY = 65_536
"""Characters of an issue's text, by GitHub's limit."""
_BEGIN = "<!-- perfci-changes:"
_END = "<!-- /perfci-changes -->"
"""The marks around the text that perfci rewrites. The first holds the event's id."""
_MARK = re.compile(re.escape(_BEGIN) + r" (?P<id>[0-9A-Za-z_.-]+) -->\n")
_PLAIN = re.compile(r"[0-9A-Za-z_.][0-9A-Za-z_.-]{0,15}")
"""An id that can stand in a mark as it is."""
_FOOT = "perfci closes this when it is fixed or acknowledged. What you write below this line stays."
_MOST_SERIES = 40
"""Series in an issue's table. The others are counted."""
_MOST_NAMES = 3
"""Benchmarks that are named of an event. The others are counted."""
_LONGEST_TITLE = 200
"""Characters of a title. GitHub takes 256, and a zero-width space may break its links."""
_OPEN = {"new", "known"}
"""The statuses of an open change."""
# apprise logs a failure with what it was about to send, and to which address
logging.getLogger("apprise").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Notifications:
    """The recipients of a trend's news. ``notify`` are apprise's addresses, which are secrets.

    ``report_url`` is linked.
    """

    notify: tuple[str, ...] = ()
    github_issue: bool = False
    repository: str | None = None
    issue_author: str = "github-actions[bot]"
    report_url: str = ""

    def check(self, *, remember: bool = True) -> None:
        """Raise an error early if a recipient could not be reached afterwards.

        Without ``remember``, news would stay new and be sent each time. That is refused.
        """
        if not remember and (self.notify or self.github_issue):
            raise UsageError(
                "notified-twice",
                "--no-remember is given with --notify or --github-issue",
                "News that are not remembered would be sent each time. Leave one of them out "
                "(PERFCI_NOTIFY= switches messages off).",
            )
        if self.report_url and not _ADDRESS.fullmatch(self.report_url):
            raise UsageError(
                "bad-address",
                f"--report-url is {self.report_url!r}, no address that can be linked",
                "Give it as in https://example.org/report, without blanks and brackets.",
            )
        _services(self.notify)
        if self.github_issue:
            self._client().close()

    def send(self, trend: Trend, say: Say) -> None:
        """Send the news. OutsideError if a recipient can't be reached.

        Messages come last, because they can't be taken back. After a failure, the issues that were
        written are found again.
        """
        if self.github_issue:
            self._write_issues(trend, say)
        if self.notify and (names := send_news(self.notify, trend, self.report_url)):
            say(f"sent the news to {listed(names)}")

    def _write_issues(self, trend: Trend, say: Say) -> None:
        with closing(self._client()) as client:
            try:
                outcomes = tell_issues(client, trend, self.issue_author, report_url=self.report_url)
            except Refused as failure:
                say(f"issue not written, the token may not: {failure.message}", err=True)
                return
        for outcome in outcomes:
            say(outcome)

    def _client(self) -> GitHubClient:
        return actions.client(self.repository, "issues: write")


def send_news(addresses: Sequence[str], trend: Trend, report_url: str = "") -> tuple[str, ...]:
    """Send the new events to each address, and return the services' names. Empty without news.

    OutsideError if one of them took no message, after all others were sent theirs.
    """
    title, lines = _news(trend)
    if not lines:
        return ()
    import apprise

    body = "\n".join([*lines, *([f"The whole report: {report_url}"] if report_url else [])])
    names: list[str] = []
    refused: list[str] = []
    for service in _services(addresses):
        sender = apprise.Apprise()
        sender.add(service)
        sent = sender.notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT)
        (names if sent else refused).append(str(service.service_name))
    if refused:
        others = f"; {listed(names)} did" if names else ""
        raise OutsideError(
            "not-notified",
            f"{listed(refused)} took no message{others}",
            "Try the address with apprise's own command: apprise -v -b test ADDRESS. What is new "
            "stays new, and is sent to all of them again.",
        )
    return tuple(names)


def _services(addresses: Sequence[str]) -> tuple[Any, ...]:
    """Return apprise's service at each address. UsageError, without the address, if it has none."""
    if not addresses:
        return ()
    if importlib.util.find_spec("apprise") is None:
        raise UsageError(
            "no-apprise", "--notify needs apprise, which isn't installed", extra_advice("notify")
        )
    import apprise

    known = tuple(apprise.Apprise.instantiate(address) for address in addresses)
    for number, service in enumerate(known, 1):
        if service is None:
            raise UsageError(
                "bad-notify-address",
                f"address {number} of --notify is none that apprise knows (it may be a secret, and "
                "is not shown)",
                "Give it as in slack://TOKEN/#CHANNEL (https://appriseit.com/services/), best by "
                "PERFCI_NOTIFY.",
            )
        if service.overflow_mode == apprise.OverflowMode.UPSTREAM:  # the address names no other
            service.overflow_mode = apprise.OverflowMode.SPLIT
    return known


def _news(trend: Trend) -> tuple[str, list[str]]:
    """Return the title of the news, and a line for each new event."""
    news = news_of(trend)
    if not news:
        return "", []
    rows = TrendRows(trend, catalogue(trend, standings(trend)), drawn=False)
    texts = (row_text(row, True) for row in rows.of(news[:_MOST_SHOWN]))
    # Slack takes <…> for a mention or a link
    lines = [unlinked(clean_line(text, _LONGEST_LINE)).replace("<", "<\u200b") for text in texts]
    rest = len(news) - len(lines)
    return news_title(news), [*lines, *([f"and {rest} more"] if rest else [])]


def tell_issues(
    client: GitHubClient, trend: Trend, author: str, *, report_url: str = ""
) -> tuple[str, ...]:
    """Open, update and close ``author``'s issues, and return what was done.

    Raises Refused if the token may not.
    """
    done: dict[int, Issue] = {}
    outcomes: list[str] = []
    left_out = 0
    opened: frozenset[str] | None = None

    def look_and_write() -> None:
        nonlocal opened, left_out
        listed = {issue.number: issue for issue in client.issues(author)} | done
        known = _ours(tuple(listed.values()), author)
        if opened is None:  # once: another count would open ``MOST`` more
            new = [mark_of(event.id) for event in trend.events if event.news and event.worse]
            missing = [mark for mark in new if mark not in known]
            opened, left_out = frozenset(missing[:MOST]), len(missing[MOST:])
        for event in filter(lambda event: event.worse, trend.events):
            mark = mark_of(event.id)
            issue = known.get(mark)
            if issue is None and mark not in opened:
                continue
            if issue is not None and issue.state != "open":
                continue  # it was closed by hand
            written = _brought_up(client, issue, issue_content(trend, event, report_url))
            if written is not None:
                word = "closed" if written.state != "open" else "updated" if issue else "opened"
                done[written.number] = written
                outcomes.append(clean_line(f"issue {word}: {written.html_url}"))

    client.retry(look_and_write)
    if left_out:
        outcomes.append(f"no issue for {counted(left_out, 'more regression')} in the report")
    return tuple(outcomes)


def _brought_up(client: GitHubClient, issue: Issue | None, content: IssueContent) -> Issue | None:
    """Open or update an issue, and return it. None if there is nothing to write."""
    if issue is None:
        return client.create_issue(content)
    body = rewritten(issue, content)
    return None if body is None else client.update_issue(issue, replace(content, body=body))


def issue_content(trend: Trend, event: TrendEvent, report_url: str) -> IssueContent:
    """Return the issue that ``event`` should have."""
    first, *others = event.changes
    before, after = event.commits
    runs = (run for line in trend.timelines.values() for run in line.runs)
    subject = next((run.subject for run in runs if run.sha == after), "")
    close, ending = _ending(event)
    units = {series.key: series.unit for series in trend.series}
    size = escape(
        event_size(event) if others else size_text(first, units.get(first.series, "")), 80
    )
    rows = {
        "on": code(event.environment),
        "between": f"{_commit(before)} and {_commit(after)}" if before != after else "",
        "at": "" if before != after else _commit(after),
        "last commit": escape(subject, 200) if before != after else "",
        "what it is": escape("; ".join(filter(None, (event_text(event), *facts(first)))), 300),
    }
    lines = [
        f"{event.series:,} of {event.measured:,} series got worse: **{escape(size, 80)}**",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows.items() if value),
        "",
        ending,
        "",
        "| case | metric | change | status |",
        "|---|---|---|---|",
        *(_row(change, units) for change in event.changes[:_MOST_SERIES]),
    ]
    if len(event.changes) > _MOST_SERIES:
        lines += ["", f"…and {len(event.changes) - _MOST_SERIES} more."]
    if report_url:
        lines += ["", f"[The whole report]({report_url})"]
    if not close:
        lines += ["", _FOOT]
    text = "\n".join((f"{_BEGIN} {mark_of(event.id)} -->", *lines, _END, ""))
    return IssueContent(_title(event), text, close)


def _title(event: TrendEvent) -> str:
    change = event.changes[0]
    if event.series == 1:
        what = f"{clean_line(change.series.case, 120)} {clean_line(change.series.metric, 40)}"
    else:
        names = first_of([clean_line(name, 60) for name in event.benchmarks], _MOST_NAMES)
        what = f"{event.series:,} series of {names}"
    size = f" by {event_size(event)}" if event_size(event) else ""
    line = clean_line(f"perfci: {what} got worse{size}", _LONGEST_TITLE)
    return unlinked(line.replace("`", "'"))[:_LONGEST_TITLE]


def _row(change: Change, units: Mapping[SeriesKey, str]) -> str:
    case, metric = code(change.series.case, 120), code(change.series.metric, 60)
    size = escape(size_text(change, units.get(change.series, "")), 80)
    status = "open" if change.status in _OPEN else change.status
    return f"| {case} | {metric} | {size} | {status} |"


def _ending(event: TrendEvent) -> tuple[Literal["", "completed", "not_planned"], str]:
    """Return the reason to close the issue, or empty, and a line on how it ended or may end."""
    changes = event.changes
    statuses = {change.status for change in changes}
    if statuses & _OPEN:
        command = f"perfci history acknowledge {event.id} --note '…'"
        return "", f"Meant? Then say so: {code(command)}"
    note = next((change.note for change in changes if change.note), "")
    noted = f": {escape(note, 500)}" if note else "."
    if "fixed" in statuses:
        return "completed", "**Fixed**: the old level is back."
    return "not_planned", f"**Acknowledged**{noted}"


def _commit(sha: str) -> str:
    """Return a commit's text. GitHub links a whole SHA if the repository has it."""
    return sha if actions.SHA.fullmatch(sha) else code(sha, 60) or "an unknown commit"


def mark_of(event_id: str) -> str:
    """Return an id as it may stand in a mark. An id that could end the mark is hashed."""
    if _PLAIN.fullmatch(event_id) and "--" not in event_id:
        return event_id
    return hashlib.sha256(event_id.encode("utf-8", "replace")).hexdigest()[:16]


def rewritten(issue: Issue, content: IssueContent) -> str | None:
    """Return the issue's new text, or None if nothing changes or the text is too long.

    What people wrote below the end mark is kept.
    """
    old = (issue.body or "").replace("\r\n", "\n")
    _, end, below = old.partition(_END)
    added = below.strip("\n")
    body = f"{content.body}\n{added}\n" if end and added else content.body
    return None if body.rstrip() == old.rstrip() or len(body) > _LONGEST_BODY else body


def _ours(issues: Sequence[Issue], author: str) -> dict[str, Issue]:
    """Return by mark the issues by ``author``: anyone can write a mark. The oldest counts."""
    by_mark: dict[str, Issue] = {}
    for issue in sorted(issues, key=lambda issue: issue.number):
        mark = _MARK.match((issue.body or "").replace("\r\n", "\n"))
        if mark and issue.user and actions.same_name(issue.user.login, author):
            by_mark.setdefault(mark["id"], issue)
    return by_mark
