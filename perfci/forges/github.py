"""One repository of a GitHub: each method is one request, or one whole list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from perfci.forges.annotations import Annotation
from perfci.forges.base import NAME, CheckContent, Comment, Pull, User
from perfci.forges.rest import Missing, Rest

LABEL = "perfci"
"""The label of perfci's issues."""


Close = Literal["", "completed", "not_planned"]
"""The reason to close an issue, empty to leave it open."""


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as GitHub has it now. GitHub's lists hold pull requests, too."""

    number: int
    html_url: str
    state: str
    user: User | None = None
    body: str | None = None
    pull_request: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class IssueContent:
    """The contents an issue should have. ``close`` is the reason to close it, or empty."""

    title: str
    body: str
    close: Close = ""


@dataclass(frozen=True, slots=True)
class _Repository:
    full_name: str


@dataclass(frozen=True, slots=True)
class _Head:
    sha: str
    repo: _Repository | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    ref: str


@dataclass(frozen=True, slots=True)
class PullAnswer:
    """A pull request, in a list or alone."""

    number: int
    state: str
    head: _Head
    base: _Target

    def record(self) -> Pull:
        """Return the record. A deleted fork leaves no repository."""
        source = self.head.repo.full_name if self.head.repo else ""
        return Pull(self.number, self.head.sha, source, self.state == "open", self.base.ref)


@dataclass(frozen=True, slots=True)
class _Output:
    annotations_count: int = 0


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """A check run."""

    id: int
    output: _Output
    external_id: str | None = None
    html_url: str | None = None


@dataclass(frozen=True, slots=True)
class _Checks:
    check_runs: tuple[CheckAnswer, ...]


@dataclass(frozen=True, slots=True)
class _CommitSha:
    sha: str


@dataclass(frozen=True, slots=True)
class _Commit:
    parents: tuple[_CommitSha, ...]


@dataclass(frozen=True, slots=True)
class _Comparison:
    merge_base_commit: _CommitSha


class GitHubClient(Rest):
    """A repository of GitHub."""

    def pull(self, number: int) -> Pull:
        """Return a pull request as it is now."""
        return self._get(f"/pulls/{number}", PullAnswer).record()

    def parents(self, sha: str) -> tuple[str, ...]:
        """Return the parents of a commit, or none where the repository doesn't have it."""
        try:
            commit = self._get(f"/git/commits/{quote(sha, safe='')}", _Commit)
        except Missing:
            return ()
        return tuple(parent.sha for parent in commit.parents)

    def create_comment(self, number: int, body: str) -> str:
        """Comment, and return the comment's address."""
        path = f"/issues/{number}/comments"
        return self._write("POST", path, Comment, {"body": body}).html_url

    def update_comment(self, comment: Comment, body: str) -> str:
        """Replace a comment's text, and return its address. Raises Unsure if it was deleted."""
        path = f"/issues/comments/{comment.id}"
        return self._write("PATCH", path, Comment, {"body": body}).html_url

    def delete_comment(self, comment: Comment) -> None:
        """Delete a comment. Does nothing if it is gone already."""
        self._delete(f"/issues/comments/{comment.id}")

    def open_pulls(self, branch: str) -> tuple[Pull, ...]:
        """Return the open pull requests of ``branch``, which is ``owner:branch``."""
        answers = self._pages("/pulls", tuple[PullAnswer, ...], tuple, state="open", head=branch)
        return tuple(answer.record() for answer in answers)

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Return whether ``commit`` is ``of`` (a commit or a branch), or an ancestor of it."""
        return self.merge_base(commit, of) == commit

    def merge_base(self, first: str, second: str) -> str:
        """Return the last common commit of two branches or commits. Empty if GitHub finds none."""
        path = f"/compare/{quote(first, safe='')}...{quote(second, safe='')}"
        try:
            return self._get(path, _Comparison, per_page="1").merge_base_commit.sha
        except Missing:
            return ""

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all comments of a pull request, the oldest first."""
        path = f"/issues/{number}/comments"
        return self._pages(path, tuple[Comment, ...], tuple)

    def checks(self, sha: str) -> tuple[CheckAnswer, ...]:
        """Return every check run of perfci's name on a commit."""
        path = f"/commits/{sha}/check-runs"
        return self._pages(
            path, _Checks, lambda page: page.check_runs, check_name=NAME, filter="all"
        )

    def create_check(
        self, sha: str, check: CheckContent, lines: Sequence[Annotation]
    ) -> CheckAnswer:
        """Create a finished check run with its first annotations."""
        request: dict[str, Any] = {
            "name": NAME,
            "head_sha": sha,
            "external_id": check.identity,
            "status": "completed",
            "conclusion": check.conclusion,
            "output": _output(check, lines),
        }
        if check.url:
            request["details_url"] = check.url
        return self._write("POST", "/check-runs", CheckAnswer, request)

    def annotate(self, number: int, check: CheckContent, lines: Sequence[Annotation]) -> None:
        """Add annotations to a check run. GitHub keeps the earlier ones."""
        request = {"output": _output(check, lines)}
        self._ask("PATCH", f"/check-runs/{number}", request)

    def issues(self, author: str) -> tuple[Issue, ...]:
        """Return the issues, open or closed, that have perfci's label or are by ``author``.

        Two lists are requested, because each may lack issues. People take labels away, and GitHub
        drops a label that the token may not set. For some apps it finds no issues by author.
        """
        queries: tuple[dict[str, str], ...] = ({"labels": LABEL}, {"creator": author})
        by_number: dict[int, Issue] = {}
        for parameters in queries:
            answers = self._pages("/issues", tuple[Issue, ...], tuple, state="all", **parameters)
            by_number |= {issue.number: issue for issue in answers if issue.pull_request is None}
        return tuple(by_number[number] for number in sorted(by_number))

    def create_issue(self, content: IssueContent) -> Issue:
        """Open an issue, and return it."""
        request: dict[str, Any] = {
            "title": content.title,
            "body": content.body,
            "labels": [LABEL],
        }
        return self._write("POST", "/issues", Issue, request)

    def update_issue(self, issue: Issue, content: IssueContent) -> Issue:
        """Replace an issue's text, and close it if ``content`` says so. Unsure if it is gone.

        Its title stays as it is: people may have found a better one.
        """
        request: dict[str, Any] = {"body": content.body}
        if content.close:
            request |= {"state": "closed", "state_reason": content.close}
        return self._write("PATCH", f"/issues/{issue.number}", Issue, request)


def _output(check: CheckContent, lines: Sequence[Annotation]) -> dict[str, Any]:
    output: dict[str, Any] = {"title": check.title, "summary": check.summary}
    if lines:
        output["annotations"] = [
            {
                "path": line.path,
                "start_line": line.line,
                "end_line": line.line,
                "annotation_level": line.level,
                "title": line.title,
                "message": line.message,
            }
            for line in lines
        ]
    return output
