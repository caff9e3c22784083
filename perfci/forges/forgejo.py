"""One repository of a Forgejo or Gitea (API v1): each method is one request, or one whole list."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from urllib.parse import quote

from perfci.forges import actions, token_of
from perfci.forges.base import Comment, Pull, same_name
from perfci.forges.github import CommentAnswer, PullAnswer, RepositoryClient, UserAnswer
from perfci.forges.rest import Missing, Service, policy_of
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
    pages = ("limit", "page")
    check_runs: None = None
    """Forgejo has commit statuses alone."""

    def open_pulls(self, branch: str) -> tuple[Pull, ...]:
        """Return the open pull requests of ``branch``, which is ``owner:branch``."""
        owner, _, name = branch.partition(":")
        answers = self._pages("/pulls", tuple[PullAnswer, ...], tuple, state="open")
        pulls = [answer.record() for answer in answers if answer.head.ref == name]
        return tuple(pull for pull in pulls if same_name(pull.source.partition("/")[0], owner))

    def leaves(self, pull: Pull, sha: str) -> str:
        """Return the commit at which ``sha`` leaves the target of ``pull``.

        ``sha`` is the head of ``pull`` or a merge of it into the target, which leaves the target at
        its first parent. Forgejo has no request for the merge base of two commits.
        """
        answer = self._get(f"/pulls/{pull.number}", PullAnswer)
        return answer.merge_base if answer.head.sha == sha else next(iter(self.parents(sha)), "")

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Return whether ``commit`` is ``of`` (a commit or a branch), or an ancestor of it."""
        path = f"/compare/{quote(of, safe='')}...{quote(commit, safe='')}"
        try:
            return self._get(path, ForgejoComparison).total_commits == 0
        except Missing:
            return False

    def login(self) -> str:
        """Return the account that the token posts as."""
        return self._account(UserAnswer).login

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all comments of a pull request, the oldest first: they come without pages."""
        answers = self._get(f"/issues/{number}/comments", tuple[CommentAnswer, ...])
        return tuple(answer.record() for answer in answers)


@dataclass(frozen=True, slots=True)
class ForgejoComparison:
    """The number of commits that one side has and the other lacks."""

    total_commits: int


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
