"""A repository's issues, by the same rules as ``client``: reading is repeated, writing is not."""

from __future__ import annotations

from typing import Any

from perfci.github.answers import IssueAnswer
from perfci.github.client import Client
from perfci.github.issue import LABEL, Content, Issue


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
        return self._post("/issues", IssueAnswer, request).record()

    def update_issue(self, issue: Issue, content: Content, body: str) -> Issue:
        """Give an issue another text, and close it where that says so. Unsure where it is gone.

        Its title stays as it is: people may have found a better one.
        """
        request: dict[str, Any] = {"body": body}
        if content.close:
            request |= {"state": "closed", "state_reason": content.close}
        return self._patch(f"/issues/{issue.number}", IssueAnswer, request).record()
