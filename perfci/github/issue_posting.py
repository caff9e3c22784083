"""Brings a repository's issues to say what a trend says: look, write, and look again when unsure.

As for comments (see ``posting``), no write is repeated as such. What was written is remembered
beside what GitHub lists, whose lists may lag behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.github.failing import Refused, Unsure
from perfci.github.issue import Issue
from perfci.github.posting import Outcome
from perfci.github.regression_issue import MOST, Step, openings, steps
from perfci.report.clean import clean_line
from perfci.trend.change import Trend

if TYPE_CHECKING:  # PyGithub may be missing, and `cli` says so in a better way
    from perfci.github.issue_client import IssueClient


def tell_issues(
    client: IssueClient,
    trend: Trend,
    author: str,
    *,
    report_url: str = "",
    most: int = MOST,
) -> tuple[Outcome, ...]:
    """Open, update and close ``author``'s issues; return what was done, or that it may not be."""
    waiting = client.waiting()
    listed = client.issues(author)
    wanted = openings(trend, listed, author, most)  # once: a second look would begin a new count
    done: dict[int, Issue] = {}
    said: list[Outcome] = []
    while True:
        known = {issue.number: issue for issue in listed} | done
        try:
            for step in steps(trend, tuple(known.values()), author, wanted, report_url):
                issue = _write(client, step)
                done[issue.number] = issue
                said.append(Outcome("posted", _told(step, issue)))
            return tuple(said)
        except Refused as failure:
            return (*said, Outcome("refused", failure.message))
        except Unsure as failure:
            waiting.before_next(failure)
            listed = client.issues(author)


def _write(client: IssueClient, step: Step) -> Issue:
    if step.issue is None:
        return client.create_issue(step.content)
    return client.update_issue(step.issue, step.content, step.body)


def _told(step: Step, issue: Issue) -> str:
    if step.issue is None:
        return clean_line(f"issue opened: {issue.url}")
    word = "updated" if issue.open else "closed"
    return clean_line(f"issue {word}: {issue.url}")
