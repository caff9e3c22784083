"""Brings a repository's issues to say what a trend says: look, write, and look again when unsure.

As for comments (see ``posting``), no write is repeated as such. What was written is remembered
beside what GitHub lists, whose lists may lag behind.
"""

from __future__ import annotations

from typing import Any

from perfci.publish.failures import Refused
from perfci.publish.github.answers import IssueAnswer
from perfci.publish.github.client import Client
from perfci.publish.github.issue import LABEL, Content, Issue
from perfci.publish.github.posting import Outcome
from perfci.publish.github.regression_issue import MOST, Step, openings, steps
from perfci.render.clean import clean_line
from perfci.trend.change import Trend


def tell_issues(
    client: IssueClient,
    trend: Trend,
    author: str,
    *,
    report_url: str = "",
    most: int = MOST,
) -> tuple[Outcome, ...]:
    """Open, update and close ``author``'s issues; return what was done, or that it may not be."""
    listed = client.issues(author)
    wanted = openings(trend, listed, author, most)  # once: a second look would begin a new count
    done: dict[int, Issue] = {}
    said: list[Outcome] = []

    def look_again() -> None:
        nonlocal listed
        listed = client.issues(author)

    def write() -> None:
        known = {issue.number: issue for issue in listed} | done
        for step in steps(trend, tuple(known.values()), author, wanted, report_url):
            issue = _write(client, step)
            done[issue.number] = issue
            said.append(Outcome("posted", _words(step, issue)))

    try:
        client.retry(write, look_again)
    except Refused as failure:
        said.append(Outcome("refused", failure.message))
    return tuple(said)


def _write(client: IssueClient, step: Step) -> Issue:
    if step.issue is None:
        return client.create_issue(step.content)
    return client.update_issue(step.issue, step.content, step.body)


def _words(step: Step, issue: Issue) -> str:
    if step.issue is None:
        return clean_line(f"issue opened: {issue.url}")
    word = "updated" if issue.open else "closed"
    return clean_line(f"issue {word}: {issue.url}")


# A repository's issues, by the same rules as ``client``: reading is repeated, writing is not.


class IssueClient(Client):
    """What perfci asks of a repository's issues. A write raises ``Unsure`` or ``Refused``."""

    def issues(self, author: str) -> tuple[Issue, ...]:
        """Return the issues, open or closed, that have perfci's label or are by ``author``.

        Both are asked for: people take labels away, GitHub drops them where the token may not set
        any, and for some apps it finds none by their name.
        """
        asked: tuple[dict[str, str], ...] = ({"labels": LABEL}, {"creator": author})
        found: dict[int, Issue] = {}
        for parameters in asked:
            answers = self._pages(
                "/issues", tuple[IssueAnswer, ...], tuple, state="all", **parameters
            )
            found |= {one.number: one.record() for one in answers if one.pull_request is None}
        return tuple(found[number] for number in sorted(found))

    def create_issue(self, content: Content) -> Issue:
        """Open an issue, and return it."""
        request: dict[str, Any] = {
            "title": content.title,
            "body": content.body,
            "labels": [LABEL],
        }
        return self._write("POST", "/issues", IssueAnswer, request).record()

    def update_issue(self, issue: Issue, content: Content, body: str) -> Issue:
        """Give an issue another text, and close it where that says so. Unsure where it is gone.

        Its title stays as it is: people may have found a better one.
        """
        request: dict[str, Any] = {"body": body}
        if content.close:
            request |= {"state": "closed", "state_reason": content.close}
        return self._write("PATCH", f"/issues/{issue.number}", IssueAnswer, request).record()
