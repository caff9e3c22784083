"""A GitLab on 127.0.0.1 with one project, which keeps to a description of GitLab's API.

It adds what GitLab's code says beyond that: pages that are shorter than they may be, a token's
role, the longest note, which pipeline a status belongs to, and that a project's notes hold its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.forges.fake import TOKEN, FakeForge, page_of
from tests.forges.openapi import Description, Operation

__all__ = ["BOT", "PROJECT", "TOKEN", "FakeGitLab", "MergeRequest"]

PROJECT = 42
PATH = "octo/models"
BOT = "project_42_bot_1a2b"
_API = Description(Path(__file__).parents[2] / "data/gitlab-api.json", "#/components/schemas/error")
_LONGEST_NOTE = 1_000_000


@dataclass(slots=True)
class MergeRequest:
    """A merge request of the fake's."""

    iid: int
    sha: str
    branch: str = "feature"
    source: int = PROJECT
    state: str = "opened"
    target: str = "main"


class FakeGitLab(FakeForge):
    """The project on a socket."""

    name = "GitLab"
    description = _API
    prefix = "/api/v4"
    invalid = 400

    def __init__(self) -> None:
        super().__init__()
        self.merge_requests: dict[int, MergeRequest] = {}
        self.commits: dict[str, tuple[str, ...]] = {}
        self.branches: dict[str, str] = {}
        self.notes: list[dict[str, Any]] = []
        self.statuses: list[dict[str, Any]] = []
        self.pipelines: set[str] = set()
        self.may = {"note", "status"}

    def note(
        self, body: str, author: str = BOT, number: int = 7, *, system: bool = False
    ) -> dict[str, Any]:
        """Leave a note as somebody."""
        one = _API.sample("note") | {"id": self._new(), "body": body, "system": system}
        one |= {"author": user(author), "noteable_iid": number, "noteable_type": "MergeRequest"}
        self.notes.append(one)
        return one

    def may_enter(self, headers: Mapping[str, str]) -> bool:
        return headers.get("PRIVATE-TOKEN") == TOKEN

    def is_here(self, asked: Operation) -> bool:
        return unquote(asked.values.get("id", PATH)) in {str(PROJECT), PATH}

    def wrong(self, why: str) -> dict[str, str]:
        return {"error": why}

    def page(
        self, asked: Operation, answer: list[Any], query: Mapping[str, str], address: str
    ) -> tuple[Any, dict[str, str]]:
        answer, more = page_of(answer, query, address)
        more.setdefault("Link", f'<{address}?page=1>; rel="first"')
        if asked.id == "list_notes":  # what the token may not see takes room on a page
            answer = [one for one in answer if not one.get("hidden")]
        return answer, more

    def _user(self, *_: Any) -> tuple[int, Any]:
        return 200, user(BOT)

    def _list_merge_requests(self, _: Any, query: Mapping[str, str], __: Any) -> tuple[int, Any]:
        return 200, [
            merge_request(one)
            for one in self.merge_requests.values()
            if one.state == query["state"] and one.branch == query["source_branch"]
        ]

    def _merge_request(self, values: Mapping[str, str], *_: Any) -> tuple[int, Any]:
        one = self.merge_requests.get(int(values["iid"]))
        return (200, merge_request(one)) if one else not_found()

    def _list_notes(
        self, values: Mapping[str, str], query: Mapping[str, str], _: Any
    ) -> tuple[int, Any]:
        found = [one for one in self.notes if one["noteable_iid"] == int(values["iid"])]
        return 200, found if query.get("sort") == "asc" else found[::-1]

    def _create_note(self, values: Mapping[str, str], _: Any, body: Any) -> tuple[int, Any]:
        wrong = self._wrong_note(body)
        return wrong or (201, self.note(body["body"], BOT, int(values["iid"])))

    def _update_note(self, values: Mapping[str, str], _: Any, body: Any) -> tuple[int, Any]:
        wrong = self._wrong_note(body)
        one = self._noted(values)
        if wrong or one is None:
            return wrong or not_found()
        one["body"] = body["body"]
        return 200, one

    def _delete_note(self, values: Mapping[str, str], *_: Any) -> tuple[int, Any]:
        one = self._noted(values)
        if one is None:
            return not_found()
        self.notes.remove(one)
        return 204, None

    def _noted(self, values: Mapping[str, str]) -> dict[str, Any] | None:
        place = (int(values["iid"]), int(values["note_id"]))
        return next((one for one in self.notes if (one["noteable_iid"], one["id"]) == place), None)

    def _wrong_note(self, body: Any) -> tuple[int, Any] | None:
        if "note" not in self.may:
            return 403, {"message": "403 Forbidden"}
        if len(body["body"]) > _LONGEST_NOTE:
            why = f"is too long (maximum is {_LONGEST_NOTE} characters)"
            return 400, {"message": {"note": [why]}}
        return None

    def _commit(self, values: Mapping[str, str], *_: Any) -> tuple[int, Any]:
        return self._shown(self.branches.get(values["sha"], values["sha"]))

    def _merge_base(self, _: Any, query: Mapping[str, Any], __: Any) -> tuple[int, Any]:
        shas = [self.branches.get(name, name) for name in query["refs[]"]]
        unknown = [sha for sha in shas if sha not in self.commits]
        if unknown:
            return 400, {"message": f"Could not find ref: {unknown[0]}"}
        one, other = (self._history(sha) for sha in shas)
        common = one & other
        best = [sha for sha in common if not any(sha in self._history(up) - {up} for up in common)]
        return self._shown(best[0]) if best else not_found()

    def _shown(self, sha: str) -> tuple[int, Any]:
        if sha not in self.commits:
            return not_found()
        parents = list(self.commits[sha])
        return 200, _API.sample("commit") | {"id": sha, "parent_ids": parents}

    def _history(self, sha: str) -> set[str]:
        return {sha}.union(*(self._history(one) for one in self.commits[sha]))

    def _list_statuses(
        self, values: Mapping[str, str], query: Mapping[str, str], _: Any
    ) -> tuple[int, Any]:
        every = [one for one in self.statuses if one["sha"] == values["sha"]]
        return 200, [one for one in every if one["name"] == query.get("name", one["name"])]

    def _create_status(self, values: Mapping[str, str], _: Any, body: Any) -> tuple[int, Any]:
        if "status" not in self.may:
            return 403, {"message": "403 Forbidden"}
        sha = values["sha"]
        if sha not in self.pipelines | set(self.branches.values()) and "ref" not in body:
            return 404, {"message": "404 References for commit Not Found"}
        one = _API.sample("status") | {"id": self._new(), "sha": sha, "name": body["name"]}
        one |= {"status": body["state"], "author": user(BOT)}
        one |= {name: body.get(name) for name in ("description", "target_url")}
        self.statuses.append(one)
        return 201, one


def user(name: str) -> dict[str, Any]:
    return _API.sample("user") | {"username": name}


def merge_request(one: MergeRequest) -> dict[str, Any]:
    whole = _API.sample("merge_request") | {"iid": one.iid, "state": one.state, "sha": one.sha}
    whole |= {"source_branch": one.branch, "target_branch": one.target}
    return whole | {"source_project_id": one.source, "target_project_id": PROJECT}


def not_found() -> tuple[int, Any]:
    return 404, {"message": "404 Not found"}
