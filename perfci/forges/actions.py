"""GitHub Actions: the event of a step, and the job's summary.

The event says which commit it is about, and who owns the branch. Nothing of that comes from a
report.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from perfci.errors import UsageError
from perfci.files import read_regular, reading, require_file, writing
from perfci.report.clean import clean_line

SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A whole SHA-1 or SHA-256."""
_MOST_SUMMARY = 1 << 20
"""The largest summary of a step that GitHub takes, in bytes. It drops all of a larger one."""
_NAME_IT = "Run it in a workflow (GITHUB_EVENT_PATH), or name the pull request: --pull NUMBER"


class NothingToPost(Exception):
    """Nothing to post to, which is not an error. The text is the reason."""


@dataclass(frozen=True, slots=True)
class PostTarget:
    """The pull request, or the merge ``group``, that a report may be posted to.

    ``number`` is 0 where GitHub has to be asked for the pull request of ``branch``
    (``owner:branch``) in the repository ``source``. ``head_sha`` is the commit that was measured.
    Empty means: the pull request's present head. ``own``: the event says that the head is of the
    repository itself, not of a fork. A merge group's is: only accounts that may write to the
    repository put a fork's change into a queue.
    """

    head_sha: str
    number: int = 0
    branch: str = ""
    source: str = ""
    own: bool = False
    group: bool = False


def target(pull: int | None, head_sha: str, event_path: Path | None) -> PostTarget:
    """Return the target to post to: the given pull request, else that of the event.

    Raises NothingToPost if the event has none.
    """
    if pull is not None:
        return PostTarget(_full_sha(head_sha, "--head-sha") if head_sha else "", pull)
    if event_path is None or head_sha:
        raise UsageError("no-event", "no pull request is named", _NAME_IT)
    with reading(event_path, "Name the event's file."):
        text = read_regular(event_path)
    return read_event(text, str(event_path))


def same_name(first: str, second: str) -> bool:
    """Return whether two names are of one repository or account. GitHub ignores their case."""
    return first.casefold() == second.casefold()


def _full_sha(text: str, name: str) -> str:
    """Return ``text``, a commit's whole SHA. UsageError on anything else."""
    if SHA.fullmatch(text) is None:
        raise UsageError(
            "bad-sha",
            f"{name}: {clean_line(text, 80)!r} is not a commit's SHA",
            "Give all its 40 hexadecimal digits: git rev-parse HEAD",
        )
    return text


def summarise(text: str) -> None:
    """Append ``text`` to the job's summary page, if there is one and it has room.

    OutsideError if the page can't be written.
    """
    named = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not named:
        return
    content = ("\n" + text.rstrip("\n") + "\n").encode("utf-8", "replace")
    with writing(Path(named)):
        require_file(Path(named))
        with Path(named).open("ab") as file:
            if os.fstat(file.fileno()).st_size + len(content) <= _MOST_SUMMARY:
                file.write(content)


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
class SourceRepository:
    """A repository, in an event or in an answer of GitHub."""

    full_name: str


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a pull request. A deleted fork leaves no repository."""

    sha: str
    repo: SourceRepository | None = None


@dataclass(frozen=True, slots=True)
class _PullRequest:
    number: int
    head: Head


@dataclass(frozen=True, slots=True)
class _WorkflowRun:
    event: str
    head_sha: str
    head_branch: str | None = None
    head_repository: SourceRepository | None = None


@dataclass(frozen=True, slots=True)
class _MergeGroup:
    head_sha: str


@dataclass(frozen=True, slots=True)
class _ActionsEvent:
    pull_request: _PullRequest | None = None
    workflow_run: _WorkflowRun | None = None
    merge_group: _MergeGroup | None = None
    repository: SourceRepository | None = None

    def is_own(self, source: SourceRepository | None) -> bool:
        """Return whether ``source`` is the event's own repository. An unknown one is not."""
        here = self.repository
        return bool(source and here and same_name(source.full_name, here.full_name))


def read_event(text: str | bytes, name: str) -> PostTarget:
    """Return what the event in ``text`` is about. UsageError, with ``name``, if it is not an event.

    Raises NothingToPost if it is about no pull request and no merge group.
    """
    try:
        event = msgspec.json.decode(text, type=_ActionsEvent)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _bad_event(name, clean_line(str(error))) from error
    if event.workflow_run is not None:
        return _of_a_run(event, event.workflow_run, name)
    if event.merge_group is not None:
        return PostTarget(_full_sha(event.merge_group.head_sha, name), own=True, group=True)
    if event.pull_request is not None:
        number, head = event.pull_request.number, event.pull_request.head
        if number < 1:  # 0 is how ``PostTarget`` says that GitHub is to be asked
            raise _bad_event(name, f"its pull request is number {number}")
        return PostTarget(_full_sha(head.sha, name), number, own=event.is_own(head.repo))
    raise NothingToPost("this event is not about a pull request")


def _bad_event(name: str, why: str) -> UsageError:
    return UsageError("bad-event", f"{name} is not an event of GitHub Actions: {why}", _NAME_IT)


def _of_a_run(event: _ActionsEvent, run: _WorkflowRun, name: str) -> PostTarget:
    """Return the target of the run that started this workflow.

    ``workflow_run.pull_requests`` is empty for forks, so the target has the branch to look for. A
    run of ``pull_request_target`` is refused: it has the base's head commit and the right to write,
    so it isn't the stage that measures.
    """
    if run.event not in {"pull_request", "merge_group"}:
        started_by = clean_line(run.event, 60)
        raise NothingToPost(
            f"the run was started by `{started_by}`, not by `pull_request` or `merge_group`"
        )
    if run.head_repository is None or not run.head_branch:
        raise NothingToPost("the repository or the branch that was measured is gone")
    own, source = event.is_own(run.head_repository), run.head_repository.full_name
    if run.event == "merge_group":
        if not own:
            raise NothingToPost("the merge group is another repository's")
        return PostTarget(_full_sha(run.head_sha, name), own=True, group=True)
    return PostTarget(
        _full_sha(run.head_sha, name),
        branch=f"{source.partition('/')[0]}:{run.head_branch}",
        source=source,
        own=own,
    )
