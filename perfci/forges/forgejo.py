"""One repository of a Forgejo or Gitea (API v1): each method is one request, or one whole list."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar
from urllib.parse import quote

from perfci.forges import actions
from perfci.forges.check import NAME, CommitStatus, StatusAnswer
from perfci.forges.github import CommentAnswer, PullAnswer, RepositoryClient
from perfci.forges.pull import Comment, Pull, same_name
from perfci.forges.rest import Missing, Service, parse, policy_of
from perfci.forges.step import token_of
from perfci.report.links import FORGEJO

SERVICE = Service(
    "Forgejo",
    "GITHUB_API_URL",
    "FORGEJO_TOKEN",
    "https://codeberg.org/api/v1",
    rights="see docs/forges.md",
)


class ForgejoClient(RepositoryClient):
    """A repository of a Forgejo or Gitea."""

    service = SERVICE
    headers: ClassVar[Mapping[str, str]] = {"Accept": "application/json"}
    pages = ("limit", "page")
    check_runs: None = None
    """There are commit statuses alone."""

    def pull(self, number: int) -> Pull:
        """Return a pull request as it is now."""
        return self._pull(number).record()

    def _pull(self, number: int) -> ForgejoPull:
        return self._get(f"/pulls/{number}", ForgejoPull)

    def open_pulls(self, branch: str) -> tuple[Pull, ...]:
        """Return the open pull requests of ``branch``, which is ``owner:branch``."""
        owner, _, name = branch.partition(":")
        answers: tuple[ForgejoPull, ...] = self._pages(
            "/pulls", tuple[ForgejoPull, ...], tuple, state="open"
        )
        return tuple(
            answer.record()
            for answer in answers
            if answer.head.ref == name
            and same_name(answer.record().source.partition("/")[0], owner)
        )

    def leaves(self, pull: Pull, sha: str) -> str:
        """Return where ``sha``, the head of ``pull`` or a merge of it, leaves the target.

        A merge of the head into the target leaves it at its first parent. Of two commits there is
        no request that names the last one they share.
        """
        answer = self._pull(pull.number)
        return answer.merge_base if answer.head.sha == sha else next(iter(self.parents(sha)), "")

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Say whether the commit ``one`` is ``of``, a commit or a branch, or before it."""
        path = f"/compare/{quote(of, safe='')}...{quote(commit, safe='')}"
        try:
            return self._get(path, ForgejoComparison).total_commits == 0
        except Missing:
            return False

    def login(self) -> str:
        """Return the account that the token posts as."""
        answer = self.retry(lambda: self._ask("GET", "/user"))
        return parse(answer.text, ForgejoUser, "GET /user", self.service).login

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all comments of a pull request, the oldest first: they come without pages."""
        answers = self._get(f"/issues/{number}/comments", tuple[CommentAnswer, ...])
        return tuple(answer.record() for answer in answers)

    def statuses(self, sha: str) -> tuple[StatusAnswer, ...]:
        """Return a commit's statuses, the newest first."""
        path = f"/commits/{sha}/statuses"
        answers: tuple[ForgejoStatus, ...] = self._pages(path, tuple[ForgejoStatus, ...], tuple)
        return tuple(answer.record() for answer in sorted(answers, key=lambda answer: -answer.id))

    def create_status(self, sha: str, status: CommitStatus) -> None:
        """Set the status of perfci's name on a commit."""
        request = {"state": status.state, "description": status.description, "context": NAME}
        if status.url:
            request["target_url"] = status.url
        self._write("POST", f"/statuses/{sha}", ForgejoStatus, request)


@dataclass(frozen=True, slots=True)
class ForgejoPull(PullAnswer):
    """A pull request, as GitHub's, and where it leaves its target."""

    merge_base: str = ""


@dataclass(frozen=True, slots=True)
class ForgejoUser:
    """An account."""

    login: str


@dataclass(frozen=True, slots=True)
class ForgejoComparison:
    """The number of commits that one side has and the other lacks."""

    total_commits: int


@dataclass(frozen=True, slots=True)
class ForgejoStatus:
    """A commit status. Its state is called status."""

    id: int
    context: str
    status: str
    description: str | None = None
    target_url: str | None = None

    def record(self) -> StatusAnswer:
        """Return the record."""
        return StatusAnswer(self.context, self.status, self.description, self.target_url)


def client(repository: str | None, most_wait_s: float) -> ForgejoClient:
    """Return the client of a repository, with the step's token."""
    token = token_of(
        ("FORGEJO_TOKEN", "GITEA_TOKEN", "GITHUB_TOKEN"),
        "Run it in a workflow, or set FORGEJO_TOKEN to a token that may write issues and the "
        "repository (docs/forges.md).",
    )
    repository = actions.named(repository)
    api_url = os.environ.get("GITHUB_API_URL", "")
    return ForgejoClient(repository, token, api_url, policy_of(most_wait_s))


STEP = replace(actions.STEP, client=client, addresses=FORGEJO)
