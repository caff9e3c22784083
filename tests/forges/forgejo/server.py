"""A Forgejo on 127.0.0.1 with one repository, which keeps to a description of API v1.

It adds what the code of Forgejo and Gitea says beyond that: comments come without pages, other
lists in pages of the server's own length, and a comparison counts what one side alone has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.forges.fake import TOKEN, FakeForge, page_of
from tests.forges.openapi import Description, Operation

__all__ = ["BOT", "REPOSITORY", "TOKEN", "FakeForgejo", "Pull"]

REPOSITORY = "octo/models"
BOT = "forgejo-actions"
_API = Description(
    Path(__file__).parents[2] / "data/forgejo-api.json", "#/components/schemas/APIError"
)
_ITS_OWN_LIMIT = 30


@dataclass(slots=True)
class Pull:
    """A pull request of the fake's."""

    number: int
    sha: str
    merge_base: str
    branch: str = "feature"
    source: str = REPOSITORY
    state: str = "open"


class FakeForgejo(FakeForge):
    """The repository on a socket."""

    name = "Forgejo"
    description = _API
    prefix = "/api/v1"

    def __init__(self) -> None:
        super().__init__()
        self.pulls: dict[int, Pull] = {}
        self.commits: dict[str, tuple[str, ...]] = {}
        self.branches: dict[str, str] = {}
        self.comments: list[dict[str, Any]] = []
        self.statuses: list[dict[str, Any]] = []
        self.may_write = True

    def comment(self, body: str, author: str = BOT, number: int = 7) -> dict[str, Any]:
        """Leave a comment as somebody."""
        one = _API.sample("Comment") | {"id": self._new(), "body": body, "user": user(author)}
        one["html_url"] = f"https://forgejo.example/{REPOSITORY}/pulls/{number}#c-{one['id']}"
        one["of"] = number
        self.comments.append(one)
        return one

    def is_here(self, asked: Operation) -> bool:
        return f"{asked.values.get('owner', 'octo')}/{asked.values.get('repo', 'models')}" == (
            REPOSITORY
        )

    def refusal(self, asked: Operation) -> dict[str, str] | None:
        writes = asked.id.startswith(("issueCreate", "issueEdit", "issueDelete", "repoCreate"))
        if writes and not self.may_write:
            return {"message": "token does not have at least one of required scope(s)"}
        return None

    def page(
        self, asked: Operation, answer: list[Any], query: Mapping[str, str], address: str
    ) -> tuple[Any, dict[str, str]]:
        if asked.id == "issueGetComments":
            return answer, {}
        size = {"limit": str(min(int(query.get("limit", "30")), _ITS_OWN_LIMIT))}
        return page_of(answer, {**query, **size}, address, "limit")

    def _userGetCurrent(self, *_: Any) -> tuple[int, Any]:
        return 200, user(BOT)

    def _repoListPullRequests(self, _: Any, query: Mapping[str, str], __: Any) -> tuple[int, Any]:
        return 200, [pull(one) for one in self.pulls.values() if one.state == query["state"]]

    def _repoGetPullRequest(self, values: Mapping[str, str], *_: Any) -> tuple[int, Any]:
        one = self.pulls.get(int(values["index"]))
        return (200, pull(one)) if one else not_found()

    def _repoGetSingleCommit(self, values: Mapping[str, str], *_: Any) -> tuple[int, Any]:
        sha = values["sha"]
        if sha not in self.commits:
            return not_found()
        parents = [{"sha": one, "url": ""} for one in self.commits[sha]]
        return 200, _API.sample("Commit") | {"sha": sha, "parents": parents}

    def _repoCompareDiff(self, values: Mapping[str, str], *_: Any) -> tuple[int, Any]:
        names = unquote(values["basehead"]).split("...")
        shas = [self.branches.get(name, name) for name in names]
        if any(sha not in self.commits for sha in shas):
            return not_found()
        base, head = (self._history(sha) for sha in shas)
        return 200, _API.sample("Compare") | {"total_commits": len(head - base)}

    def _history(self, sha: str) -> set[str]:
        return {sha}.union(*(self._history(one) for one in self.commits[sha]))

    def _issueGetComments(self, values: Mapping[str, str], *_: Any) -> tuple[int, Any]:
        return 200, [one for one in self.comments if one["of"] == int(values["index"])]

    def _issueCreateComment(self, values: Mapping[str, str], _: Any, body: Any) -> tuple[int, Any]:
        return 201, self.comment(body["body"], BOT, int(values["index"]))

    def _issueEditComment(self, values: Mapping[str, str], _: Any, body: Any) -> tuple[int, Any]:
        for one in self.comments:
            if one["id"] == int(values["id"]):
                one["body"] = body["body"]
                return 200, one
        return not_found()

    def _issueDeleteComment(self, values: Mapping[str, str], *_: Any) -> tuple[int, Any]:
        left = [one for one in self.comments if one["id"] != int(values["id"])]
        gone = len(left) < len(self.comments)
        self.comments = left
        return (204, None) if gone else not_found()

    def _repoListStatusesByRef(self, values: Mapping[str, str], *_: Any) -> tuple[int, Any]:
        return 200, [one for one in self.statuses if one["url"] == values["ref"]]

    def _repoCreateStatus(self, values: Mapping[str, str], _: Any, body: Any) -> tuple[int, Any]:
        if values["sha"] not in self.commits:
            return not_found()
        one = _API.sample("CommitStatus") | {"id": self._new(), "url": values["sha"]}
        one |= {name: body.get(name, "") for name in ("context", "description", "target_url")}
        one["status"] = body["state"]
        self.statuses.append(one)
        return 201, one


def user(name: str) -> dict[str, Any]:
    return _API.sample("User") | {"login": name}


def pull(one: Pull) -> dict[str, Any]:
    whole = _API.sample("PullRequest") | {"number": one.number, "state": one.state}
    whole["merge_base"] = one.merge_base
    whole["head"] |= {"sha": one.sha, "ref": one.branch, "repo": {"id": 2, "full_name": one.source}}
    whole["base"] |= {"ref": "main", "repo": {"id": 1, "full_name": REPOSITORY}}
    return whole


def not_found() -> tuple[int, Any]:
    return 404, {"message": "The target couldn't be found."}
