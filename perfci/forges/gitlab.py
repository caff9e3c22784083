"""One project of a GitLab: each method is one request, or one whole list."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from perfci.errors import UsageError
from perfci.forges import CiStep, given_pull, token_of
from perfci.forges.base import (
    MERGE_REQUEST,
    NAME,
    Comment,
    NothingToPost,
    PostTarget,
    Pull,
    full_sha,
)
from perfci.forges.rest import Missing, Rest, Service, TooLong, policy_of
from perfci.report.clean import clean_line
from perfci.report.links import GITLAB

_FITTING_NOTES = 10
"""Notes per page that always fit the longest answer that is read.

Each may have GitLab's longest text, with all of its characters escaped.
"""
_ACTION = re.compile(r"^[^\S\n]*(?=/)", re.MULTILINE)
"""The blanks before a slash that begins a line, which GitLab reads as a quick action."""
_REFERENCE = re.compile(r"&#(?:33|36|38|126);(?=\d)")
"""One of ``!$&~`` before a number, as ``escape`` writes it. ``escape`` breaks ``@`` and ``#``."""
SERVICE = Service(
    "GitLab",
    "CI_API_V4_URL",
    "PERFCI_GITLAB_TOKEN",
    "https://gitlab.com/api/v4",
    rights="see docs/forges.md",
)
_LONGEST_NOTE = 100_000
"""Characters of a note that are kept: more than perfci writes, few enough for the memory."""
_OTHERWISE = (
    "let the job run in merge requests' pipelines alone "
    '(rules: - if: $CI_PIPELINE_SOURCE == "merge_request_event"), or give --pull NUMBER.'
)
"""The end of an advice to a job whose pipeline has no merge request."""
_PROJECT = re.compile(r"[0-9]{1,12}|[A-Za-z0-9_][\w.-]*(/(?!\.{1,2}(/|$))[\w.-]+)+", re.ASCII)
"""A project's number, or its path without parts of one or two dots."""


class GitLabClient(Rest):
    """A project, by its path or its number. A note's address is made of the project's page."""

    service = SERVICE
    root = "/projects/"
    safe = ""
    authorization = ("PRIVATE-TOKEN", "")
    check_runs: None = None
    """GitLab has commit statuses alone. It puts one into the commit's newest pipeline."""
    states: ClassVar[Mapping[str, str]] = {"success": "success", "failure": "failed"}
    status_name = "name"
    statuses = "/repository/commits/{}/statuses"
    status_filter: ClassVar[Mapping[str, str]] = {"name": NAME}

    def pull(self, number: int) -> Pull:
        """Return a merge request as it is now."""
        return self._get(f"/merge_requests/{number}", MergeRequestAnswer).record()

    def open_pulls(self, branch: str) -> tuple[Pull, ...]:
        """Return the open merge requests of a branch, which forks may have as well."""
        kind = tuple[MergeRequestAnswer, ...]
        answers = self._pages("/merge_requests", kind, tuple, state="opened", source_branch=branch)
        return tuple(answer.record() for answer in answers)

    def parents(self, sha: str) -> tuple[str, ...]:
        """Return the parents of a commit, or none where the project doesn't have it."""
        commit = self._commit(sha)
        return commit.parent_ids if commit else ()

    def leaves(self, pull: Pull, sha: str) -> str:
        """Return the commit at which ``sha`` leaves the target of ``pull``. Empty if unknown."""
        return self._merge_base(pull.target, sha)

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Return whether ``commit`` is ``of`` (a commit or a branch), or an ancestor of it."""
        # the commit is looked up first: GitLab answers the merge base of an unknown commit with a
        # bad request, as it does for any other mistake
        return self._commit(commit) is not None and self._merge_base(commit, of) == commit

    def _commit(self, sha: str) -> GitLabCommit | None:
        try:
            return self._get(f"/repository/commits/{quote(sha, safe='')}", GitLabCommit)
        except Missing:
            return None

    def _merge_base(self, first: str, second: str) -> str:
        parameters = {"refs[]": (first, second)}
        try:
            return self._get("/repository/merge_base", GitLabCommit, **parameters).id
        except Missing:
            return ""

    def text(self, body: str) -> str:
        """Return a note's text without quick actions (``/merge``) and foreign references (``!12``).

        GitLab carries out quick actions with the token's rights. It has done so even in fences,
        because it didn't always know where a fence of four backticks ends. A reference would leave
        a trace at the item that it names.
        """
        return _REFERENCE.sub("\\g<0>\u200b", _ACTION.sub("\\g<0>\u200b", body))

    def login(self) -> str:
        """Return the account that the token posts as: a project's token has one of its own."""
        return self._account(GitLabUser).username

    def comments(self, number: int) -> tuple[Comment, ...]:
        """Return all notes of a merge request but GitLab's own, the oldest first."""
        try:
            notes = self._notes(number, 100)
        except TooLong:  # anyone may leave notes of a million characters
            notes = self._notes(number, _FITTING_NOTES)
        return tuple(note.record(number, self._url(number)) for note in notes if not note.system)

    def _notes(self, number: int, at_once: int) -> tuple[NoteAnswer, ...]:
        order = {"sort": "asc", "order_by": "created_at"}
        path = f"/merge_requests/{number}/notes"
        return self._pages(path, tuple[NoteAnswer, ...], tuple, at_once, **order)

    def create_comment(self, number: int, body: str) -> str:
        """Leave a note, and return its address."""
        path = f"/merge_requests/{number}/notes"
        note = self._write("POST", path, NoteAnswer, {"body": body})
        return note.record(number, self._url(number)).url

    def update_comment(self, comment: Comment, body: str) -> str:
        """Replace a note's text, and return its address. Raises Unsure if it was deleted."""
        path = f"/merge_requests/{comment.pull}/notes/{comment.id}"
        self._write("PUT", path, NoteAnswer, {"body": body})
        return comment.url

    def delete_comment(self, comment: Comment) -> None:
        """Delete a note. Does nothing if it is gone already."""
        self._delete(f"/merge_requests/{comment.pull}/notes/{comment.id}")

    def _url(self, number: int) -> str:
        return f"{self._page}/-/merge_requests/{number}" if self._page else ""


@dataclass(frozen=True, slots=True)
class GitLabUser:
    """An account."""

    username: str


@dataclass(frozen=True, slots=True)
class MergeRequestAnswer:
    """A merge request, in a list or alone. A source project that was deleted has no id."""

    iid: int
    state: str
    sha: str | None
    target_branch: str
    target_project_id: int
    source_project_id: int | None = None
    author: GitLabUser | None = None

    def record(self) -> Pull:
        """Return the record."""
        return Pull(
            self.iid,
            self.sha or "",
            str(self.source_project_id or ""),
            self.state == "opened",
            self.target_branch,
            self.author.username if self.author else "",
            own=self.source_project_id == self.target_project_id,
            term=MERGE_REQUEST,
        )


@dataclass(frozen=True, slots=True)
class NoteAnswer:
    """A note. GitLab's own ("changed the description") are notes, too."""

    id: int
    body: str
    author: GitLabUser | None = None
    system: bool = False
    created_at: str = ""
    updated_at: str = ""

    def record(self, number: int, url: str) -> Comment:
        """Return the record of a note on the merge request ``number``, whose page is ``url``."""
        author = self.author.username if self.author else ""
        return Comment(
            self.id,
            author,
            self.body[:_LONGEST_NOTE],
            f"{url}#note_{self.id}" if url else "",
            number,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


@dataclass(frozen=True, slots=True)
class GitLabCommit:
    """A commit."""

    id: str
    parent_ids: tuple[str, ...] = ()


def read_job(variables: Mapping[str, str]) -> PostTarget | NothingToPost:
    """Return what the job's pipeline is about. UsageError if a variable is not GitLab's.

    A pipeline of merged results runs on a commit of its own, which is not the merge request's head.
    """
    head = variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or variables.get("CI_COMMIT_SHA", "")
    number = variables.get("CI_MERGE_REQUEST_IID", "")
    if number:
        if not (number.isascii() and number.isdigit() and 0 < int(number) < 10**9):
            raise UsageError(
                "bad-event",
                f"CI_MERGE_REQUEST_IID is {clean_line(number, 40)!r}, no merge request's number",
                "Run it in a merge request's pipeline, or name the merge request: --pull NUMBER",
            )
        own = not is_of_a_fork(variables)
        return PostTarget(int(number), full_sha(head, "CI_COMMIT_SHA"), own=own, term=MERGE_REQUEST)
    branch, project = variables.get("CI_COMMIT_BRANCH", ""), variables.get("CI_PROJECT_ID", "")
    if not branch or not project or branch == variables.get("CI_DEFAULT_BRANCH"):
        return NothingToPost("this pipeline has no merge request", f"To have one, {_OTHERWISE}")
    return PostTarget(
        head_sha=full_sha(head, "CI_COMMIT_SHA"),
        branch=branch,
        source=project,
        own=True,
        term=MERGE_REQUEST,
        advice=f"Open one and run this job again, {_OTHERWISE}",
    )


def is_of_a_fork(variables: Mapping[str, str]) -> bool:
    """Return whether the pipeline is of a merge request from another project.

    A merge request whose source isn't known counts as one.
    """
    if not variables.get("CI_MERGE_REQUEST_IID"):
        return False
    source = variables.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "")
    return not source or source != variables.get("CI_MERGE_REQUEST_PROJECT_ID")


def target(pull: int | None, head_sha: str, _event_path: Path | None) -> PostTarget | NothingToPost:
    """Return the target to post to: the given merge request, else that of the pipeline."""
    given = given_pull(pull, head_sha)
    if given is not None:
        return given
    if not os.environ.get("CI_COMMIT_SHA"):
        raise UsageError(
            "no-event",
            "no merge request is named",
            "Run it in a merge request's pipeline, or give --pull NUMBER.",
        )
    return read_job(os.environ)


def client(repository: str | None, most_wait_s: float) -> GitLabClient:
    """Return the client of the project that the merge request is in, with the job's token."""
    token = token_of(
        ("PERFCI_GITLAB_TOKEN",),
        "Give the job a variable of that name with a project access token that may use the API "
        "(docs/forges.md).",
    )
    project = repository or _first("CI_MERGE_REQUEST_PROJECT_ID", "CI_PROJECT_ID")
    if _PROJECT.fullmatch(project) is None:
        raise UsageError(
            "no-repository",
            f"{project!r} is no project" if project else "no project is named",
            "Give --repository GROUP/NAME, or the project's number.",
        )
    api_url = os.environ.get("CI_API_V4_URL") or SERVICE.example
    page = repository_url(repository)
    return GitLabClient(project, token, api_url, policy_of(most_wait_s), page=page)


def run_url() -> str:
    """Return the address of this job, empty outside of GitLab CI."""
    return os.environ.get("CI_JOB_URL", "")


def repository_url(repository: str | None) -> str:
    """Return the page of the project that is posted to, empty where it isn't known."""
    server = os.environ.get("CI_SERVER_URL", "")
    if repository and not repository.isdigit():
        return f"{server}/{repository}" if server else ""
    return "" if repository else _first("CI_MERGE_REQUEST_PROJECT_URL", "CI_PROJECT_URL")


def attempt() -> str:
    """Return an id of this job. A job that is started again gets another id."""
    return os.environ.get("CI_JOB_ID", "")


def _first(*names: str) -> str:
    return next((text for name in names if (text := os.environ.get(name, ""))), "")


STEP = CiStep(target, client, run_url, repository_url, attempt, GITLAB)
