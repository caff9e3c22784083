"""A GitHub on 127.0.0.1 that keeps to GitHub's own description of its API.

It has pull requests, comments, checks and a token's rights. Each operation of
the description that perfci uses is a method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forges.fake import TOKEN, FakeForge, Fault, dropped, limited, page_of
from tests.forges.openapi import Description, Operation

__all__ = ["BOT", "REPOSITORY", "TOKEN", "FakeGitHub", "Fault", "Pull", "dropped", "limited"]

REPOSITORY = "octo/models"
BOT = "github-actions[bot]"
_API = Description(
    Path(__file__).parents[2] / "data" / "github-openapi.json", "#/components/schemas/basic-error"
)
sample = _API.sample
NO_RIGHT = {
    "message": "Resource not accessible by integration",
    "documentation_url": "https://docs.github.com/rest",
    "status": "403",
}
_NEEDS = {
    "issues/create-comment": "pull-requests",
    "issues/update-comment": "pull-requests",
    "issues/delete-comment": "pull-requests",
    "checks/create": "checks",
    "checks/update": "checks",
}


@dataclass(slots=True)
class Pull:
    """A pull request of the fake's."""

    number: int
    sha: str
    branch: str = "feature"
    source: str = REPOSITORY
    state: str = "open"
    target: str = "main"


class FakeGitHub(FakeForge):
    """One repository. Everything in it may be set and looked at by a test."""

    name = "GitHub"
    description = _API

    def __init__(self) -> None:
        super().__init__()
        self.pulls: dict[int, Pull] = {}
        self.commits: dict[str, tuple[str, ...]] = {}
        self.comments: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []
        self.annotations: dict[int, list[dict[str, Any]]] = {}
        self.rights = {"pull-requests", "checks"}

    def comment(self, body: str, author: str | None = BOT, number: int = 7) -> dict[str, Any]:
        """Leave a comment as somebody; None is an account that is gone."""
        user = None if author is None else sample("simple-user") | {"login": author}
        one = sample("issue-comment") | {"id": self._new(), "body": body, "user": user}
        one["html_url"] = f"https://github.com/{REPOSITORY}/pull/{number}#c-{one['id']}"
        one["issue_url"] = str(number)
        self.comments.append(one)
        return one

    def may_enter(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization", "").split()[-1:] == [TOKEN]

    def is_here(self, asked: Operation) -> bool:
        return f"{asked.values['owner']}/{asked.values['repo']}" == REPOSITORY

    def look_at(self, asked: Operation, headers: Mapping[str, str]) -> None:
        for name in ("Accept", "User-Agent", "X-GitHub-Api-Version"):
            if not headers.get(name):
                self.violations.append(f"{asked.id} without {name}")

    def refusal(self, asked: Operation) -> dict[str, str] | None:
        return None if _NEEDS.get(asked.id, "") in {"", *self.rights} else NO_RIGHT

    def page(
        self, asked: Operation, answer: list[Any], query: Mapping[str, str], address: str
    ) -> tuple[Any, dict[str, str]]:
        entries, more = page_of(answer, query, address)
        if asked.id == "checks/list-for-ref":
            return {"total_count": len(entries), "check_runs": entries}, more
        return entries, more

    def _pulls_list(self, _: Any, query: Mapping[str, str], __: Any) -> tuple[int, Any]:
        def matches(pull: Pull) -> bool:
            owner = pull.source.split("/")[0]
            head = query.get("head", f"{owner}:{pull.branch}")
            return query.get("state", "open") in {pull.state, "all"} and head == (
                f"{owner}:{pull.branch}"
            )

        return 200, [
            self._pull(one, "pull-request-simple") for one in self.pulls.values() if matches(one)
        ]

    def _pulls_get(self, values: Mapping[str, str], _: Any, __: Any) -> tuple[int, Any]:
        pull = self.pulls.get(int(values["pull_number"]))
        return (200, self._pull(pull, "pull-request")) if pull else _not_found()

    def _git_get_commit(self, values: Mapping[str, str], _: Any, __: Any) -> tuple[int, Any]:
        parents = self.commits.get(values["commit_sha"])
        if parents is None:
            return _not_found()
        each = [{"sha": sha, "url": "", "html_url": ""} for sha in parents]
        return 200, sample("git-commit") | {"sha": values["commit_sha"], "parents": each}

    def _issues_list_comments(self, values: Mapping[str, str], _: Any, __: Any) -> tuple[int, Any]:
        return 200, [one for one in self.comments if one["issue_url"] == values["issue_number"]]

    def _issues_create_comment(
        self, values: Mapping[str, str], _: Any, body: Any
    ) -> tuple[int, Any]:
        if len(body["body"]) > 65_536:
            return _invalid("body is too long (maximum is 65536 characters)")
        return 201, self.comment(body["body"], BOT, int(values["issue_number"]))

    def _issues_update_comment(
        self, values: Mapping[str, str], _: Any, body: Any
    ) -> tuple[int, Any]:
        for one in self.comments:
            if one["id"] == int(values["comment_id"]):
                one["body"] = body["body"]
                return 200, one
        return _not_found()

    def _issues_delete_comment(self, values: Mapping[str, str], _: Any, __: Any) -> tuple[int, Any]:
        left = [one for one in self.comments if one["id"] != int(values["comment_id"])]
        if len(left) == len(self.comments):
            return _not_found()
        self.comments = left
        return 204, None

    def _checks_create(self, _: Any, __: Any, body: Any) -> tuple[int, Any]:
        one = sample("check-run") | {
            "id": self._new(),
            "name": body["name"],
            "head_sha": body["head_sha"],
            "external_id": body.get("external_id"),
            "status": "completed" if "conclusion" in body else body.get("status", "queued"),
            "conclusion": body.get("conclusion"),
            "details_url": body.get("details_url"),
        }
        one["html_url"] = f"https://github.com/{REPOSITORY}/runs/{one['id']}"
        self.checks.append(one)
        return self._shown(one, body, 201)

    def _checks_update(self, values: Mapping[str, str], _: Any, body: Any) -> tuple[int, Any]:
        for one in self.checks:
            if one["id"] == int(values["check_run_id"]):
                return self._shown(one, body, 200)
        return _not_found()

    def _shown(self, one: dict[str, Any], body: Any, status: int) -> tuple[int, Any]:
        """Take over a request's output; annotations are added to those that are there."""
        output = body["output"]
        kept = self.annotations.setdefault(one["id"], [])
        for line in output.get("annotations", []):
            if line["start_line"] < 1 or len(line.get("title", "")) > 255:
                return _invalid("annotation")
            kept.append(line)
        one["output"] = {
            **sample("check-run")["output"],
            "title": output.get("title"),
            "summary": output["summary"],
            "annotations_count": len(kept),
        }
        return status, one

    def _checks_list_for_ref(
        self, values: Mapping[str, str], query: Mapping[str, str], _: Any
    ) -> tuple[int, Any]:
        return 200, [
            one
            for one in reversed(self.checks)
            if one["head_sha"] == values["ref"]
            and query.get("check_name", one["name"]) == one["name"]
        ]

    def _pull(self, pull: Pull, schema: str) -> dict[str, Any]:
        whole = sample(schema) | {"number": pull.number, "state": pull.state}
        whole["head"] |= {"sha": pull.sha, "ref": pull.branch}
        whole["base"] |= {"ref": pull.target}
        whole["head"]["repo"] |= {"full_name": pull.source}
        whole["base"]["repo"] |= {"full_name": REPOSITORY}
        return whole


def _not_found() -> tuple[int, Any]:
    return 404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}


def _invalid(why: str) -> tuple[int, Any]:
    return 422, {
        "message": f"Validation Failed: {why}",
        "documentation_url": "https://docs.github.com/rest",
    }
