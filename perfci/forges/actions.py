"""GitHub Actions: the event, the repository and the token of a step, and the job's summary.

The event says which commit it is about, and who owns the branch. Nothing of that comes from a
report.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from perfci.errors import OutsideError, UsageError
from perfci.files import read_regular, require_file
from perfci.forges.base import SHA, MergeGroup, NothingToPost, PostTarget, full_sha, same_name
from perfci.outputs import Say, unwritable
from perfci.report.clean import clean_line

if TYPE_CHECKING:
    from perfci.forges.github import GitHubClient

_QUEUED = re.compile(rf"gh-readonly-queue/.+/pr-[0-9]+-({SHA.pattern})")
"""The branch that a merge queue makes for a group.

Its name ends with the commit that the group is built on.
"""
_REPOSITORY = re.compile(r"[A-Za-z0-9_-]+/(?!\.{1,2}$)[A-Za-z0-9._-]+")
"""``OWNER/NAME``. A name of one or two dots would change a request's path."""
_TOKEN = re.compile(r"[!-~]+")
"""Printable ASCII without blanks."""
_MOST_SUMMARY = 1 << 20
"""The largest summary of a step that GitHub takes, in bytes. It drops all of a larger one."""
_NAME_IT = "Run it in a workflow (GITHUB_EVENT_PATH), or name the pull request: --pull NUMBER"


def target(
    pull: int | None, head_sha: str, event_path: Path | None
) -> PostTarget | MergeGroup | NothingToPost:
    """Return the target to post to: the given pull request, else that of the event."""
    if pull is not None:
        return PostTarget(pull, full_sha(head_sha, "--head-sha") if head_sha else "")
    if head_sha:
        raise UsageError(
            "no-pull", "--head-sha is given without --pull", "Name both, or leave it to the event."
        )
    if event_path is None:
        raise UsageError(
            "no-event",
            "no pull request is named",
            "Run it in a workflow, which sets GITHUB_EVENT_PATH, or give --pull NUMBER.",
        )
    try:
        text = read_regular(event_path)
    except OSError as error:
        raise OutsideError(
            "unreadable",
            f"{event_path} can't be read: {error.strerror or error}",
            "Name the event's file.",
        ) from error
    return read_event(text, str(event_path))


def client(
    repository: str | None,
    most_wait_s: float,
    rights: str = "pull-requests: write and checks: write",
) -> GitHubClient:
    """Return the client of a repository, with the step's token, which needs ``rights``."""
    token = _token(
        "Give the step `env: GITHUB_TOKEN: ${{ github.token }}`, and its job the rights "
        f"{rights}."
    )
    repository = named(repository)
    from perfci.forges.github import GitHubClient

    api_url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    return GitHubClient(repository, token, api_url, most_wait_s)


def _token(advice: str) -> str:
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    if not token:
        raise UsageError("no-token", "GITHUB_TOKEN is not set", advice)
    if _TOKEN.fullmatch(token) is None:
        raise UsageError(
            "bad-token",
            "GITHUB_TOKEN holds a character that no token has",
            "Set it to the token alone, without quotes and line breaks.",
        )
    return token


def named(repository: str | None) -> str:
    """Return a repository's name as ``owner/name``. UsageError on anything else."""
    if repository is None or _REPOSITORY.fullmatch(repository) is None:
        raise UsageError(
            "no-repository",
            f"{repository!r} is no repository" if repository else "no repository is named",
            "Give --repository OWNER/NAME, or set GITHUB_REPOSITORY.",
        )
    return repository


def summarise(text: str, body_file: Path, say: Say) -> OutsideError | None:
    """Append ``text`` to the job's summary page, and say where the text is.

    Return the error if the page can't be written, for the caller to raise after its other work.
    """
    named = os.environ.get("GITHUB_STEP_SUMMARY", "")
    try:
        written = bool(named) and _append_summary(Path(named), text)
    except OSError as error:
        problem = unwritable(Path(named), error, f"The text is in {body_file}.")
        say(f"warning: {problem.message}; its text is in {body_file}", err=True)
        return problem
    where = "on the job's summary page and in" if written else "in"
    say(f"its text is {where} {body_file}", err=True)
    return None


def _append_summary(path: Path, text: str) -> bool:
    """Append ``text`` to the step's summary. If it is full, write nothing and return False.

    Raises OSError if the file can't be written.
    """
    require_file(path)
    content = ("\n" + text.rstrip("\n") + "\n").encode("utf-8", "replace")
    with path.open("ab") as file:
        if os.fstat(file.fileno()).st_size + len(content) > _MOST_SUMMARY:
            return False
        file.write(content)
    return True


def run_url() -> str:
    """Return the address of this run of the workflow, empty outside Actions."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    server, repository, run = (os.environ.get(name, "") for name in names)
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""


def repository_url(repository: str | None) -> str:
    """Return the address of the repository that is posted to, empty outside Actions."""
    server = os.environ.get("GITHUB_SERVER_URL", "")
    return f"{server}/{repository}" if server and repository else ""


def attempt() -> str:
    """Return an id of this attempt of a run, empty outside Actions."""
    names = ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT")
    return "-".join(filter(None, (os.environ.get(name, "") for name in names)))


@dataclass(frozen=True, slots=True)
class _EventRepository:
    full_name: str


@dataclass(frozen=True, slots=True)
class _EventHead:
    sha: str
    repo: _EventRepository | None = None


@dataclass(frozen=True, slots=True)
class _PullRequest:
    number: int
    head: _EventHead


@dataclass(frozen=True, slots=True)
class _WorkflowRun:
    event: str
    head_sha: str
    head_branch: str | None = None
    head_repository: _EventRepository | None = None


@dataclass(frozen=True, slots=True)
class _MergeGroup:
    head_sha: str
    base_sha: str


@dataclass(frozen=True, slots=True)
class _ActionsEvent:
    pull_request: _PullRequest | None = None
    workflow_run: _WorkflowRun | None = None
    merge_group: _MergeGroup | None = None
    repository: _EventRepository | None = None


def read_event(text: str | bytes, name: str) -> PostTarget | MergeGroup | NothingToPost:
    """Return what the event in ``text`` is about. UsageError, with ``name``, if it is no event."""
    try:
        event = msgspec.json.decode(text, type=_ActionsEvent)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(
            "bad-event", f"{name} is no event of GitHub Actions: {clean_line(str(error))}", _NAME_IT
        ) from error
    if event.workflow_run is not None:
        return _of_a_run(event.workflow_run, event.repository, name)
    if event.merge_group is not None:
        group = event.merge_group
        return MergeGroup(full_sha(group.head_sha, name), full_sha(group.base_sha, name))
    if event.pull_request is not None:
        number = event.pull_request.number
        if number < 1:  # 0 is how ``PostTarget`` says that GitHub is to be asked
            raise UsageError(
                "bad-event",
                f"{name} is no event of GitHub Actions: its pull request is number {number}",
                _NAME_IT,
            )
        head = event.pull_request.head
        own = _is_own(head.repo, event.repository)
        return PostTarget(number, full_sha(head.sha, name), own=own)
    return NothingToPost("this event has no pull request")


def _of_a_run(
    run: _WorkflowRun, here: _EventRepository | None, name: str
) -> PostTarget | MergeGroup | NothingToPost:
    """Return the target of the run that started this workflow.

    ``workflow_run.pull_requests`` is empty for forks, so the target has the branch to look for. A
    run of ``pull_request_target`` is refused: it has the base's head commit and the right to write,
    so it isn't the stage that measures.
    """
    if run.event not in {"pull_request", "merge_group"}:
        started_by = clean_line(run.event, 60)
        return NothingToPost(
            f"the run was started by `{started_by}`, not by `pull_request` or `merge_group`"
        )
    if run.head_repository is None or not run.head_branch:
        return NothingToPost("the repository or the branch that was measured is gone")
    source = run.head_repository
    if run.event == "merge_group":
        if here is None or not same_name(source.full_name, here.full_name):
            return NothingToPost("the merge group is another repository's")
        branch = _QUEUED.fullmatch(run.head_branch)
        return MergeGroup(full_sha(run.head_sha, name), branch[1] if branch else "")
    return PostTarget(
        head_sha=full_sha(run.head_sha, name),
        branch=f"{source.full_name.partition('/')[0]}:{run.head_branch}",
        source=source.full_name,
        own=_is_own(source, here),
    )


def _is_own(source: _EventRepository | None, here: _EventRepository | None) -> bool:
    """Return whether a head is the repository's own. It is not if either of them isn't known."""
    if source is None or here is None:
        return False
    return same_name(source.full_name, here.full_name)
