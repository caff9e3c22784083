"""A GitHub on 127.0.0.1 that keeps to GitHub's own description of its API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.forges.fake import TOKEN, Answered, FakeForge, Fault, dropped, limited, page_of
from tests.forges.github.description import answer_faults, operation, request_faults
from tests.forges.github.state import BOT, REPOSITORY, Pull, Repository

__all__ = ["BOT", "REPOSITORY", "TOKEN", "FakeGitHub", "Fault", "Pull", "dropped", "limited"]


class FakeGitHub(Repository, FakeForge):
    """The repository on a socket."""

    def __init__(self) -> None:
        Repository.__init__(self)
        FakeForge.__init__(self)

    def answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        headers: Mapping[str, str],
    ) -> Answered:
        if headers.get("Authorization", "").split()[-1:] != [TOKEN]:
            return 401, {"message": "Bad credentials"}, {}
        asked = operation(method, path)
        if asked is None:
            self.violations.append(f"GitHub has no {method} {path}")
            return 404, {"message": "Not Found"}, {}
        for name in ("Accept", "User-Agent", "X-GitHub-Api-Version"):
            if not headers.get(name):
                self.violations.append(f"{asked.id} without {name}")
        if f"{asked.values['owner']}/{asked.values['repo']}" != REPOSITORY:
            return 404, {"message": "Not Found"}, {}
        faults = request_faults(asked, query, body)
        if faults:
            self.violations += faults
            return 422, {"message": "Invalid request", "documentation_url": ""}, {}
        status, answer = self.handle(asked, query, body)
        more: dict[str, str] = {}
        if isinstance(answer, list):
            answer, more = page_of(answer, query, f"{self.url}{path}")
            if asked.id == "checks/list-for-ref":
                answer = {"total_count": len(answer), "check_runs": answer}
        self.violations += answer_faults(asked, status, answer)
        return status, answer, more
