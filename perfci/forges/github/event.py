"""Pure: which commit, and whose, an Actions event is about. Nothing of it comes from a report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from perfci.errors import UsageError
from perfci.report.clean import clean_line

T = TypeVar("T")
SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A whole SHA-1 or SHA-256."""
_QUEUED = re.compile(rf"gh-readonly-queue/.+/pr-[0-9]+-({SHA.pattern})")
"""The branch that a merge queue makes for a group, which ends with the commit it is built on."""


@dataclass(frozen=True, slots=True)
class Term:
    """What a forge calls a pull request, and the sign before its number."""

    name: str
    sign: str


PULL_REQUEST = Term("pull request", "#")
MERGE_REQUEST = Term("merge request", "!")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a report may be posted to.

    ``number`` is 0 where the forge has to be asked for the pull request of ``branch``
    (``owner:branch``, on GitLab the branch alone) in the repository ``source``. ``head_sha`` is the
    commit that was measured, empty where whatever the pull request's head is now is meant.
    ``own``: the event says that the head is a branch of the repository itself, not a fork's.
    ``term`` is what it is called there, and ``advice`` what to do where ``branch`` has none.
    """

    number: int = 0
    head_sha: str = ""
    branch: str = ""
    source: str = ""
    own: bool = False
    term: Term = PULL_REQUEST
    advice: str = ""


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """A commit that a merge queue made of the one before it, ``base_sha``, and what is to go in.

    It is no pull request's head, and never moves. ``base_sha`` is empty where the event doesn't
    say it.
    """

    head_sha: str
    base_sha: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to post to, and nothing is wrong; why, and what to do about it."""

    reason: str
    advice: str = ""

    @property
    def text(self) -> str:
        """Both on one line."""
        return f"{self.reason}. {self.advice}" if self.advice else self.reason


@dataclass(frozen=True, slots=True)
class _Owner:
    login: str


@dataclass(frozen=True, slots=True)
class _Repository:
    full_name: str
    owner: _Owner


@dataclass(frozen=True, slots=True)
class _Head:
    sha: str
    repo: _Repository | None = None


@dataclass(frozen=True, slots=True)
class _PullRequest:
    number: int
    head: _Head


@dataclass(frozen=True, slots=True)
class _WorkflowRun:
    event: str
    head_sha: str
    head_branch: str | None = None
    head_repository: _Repository | None = None


@dataclass(frozen=True, slots=True)
class _MergeGroup:
    head_sha: str
    base_sha: str


@dataclass(frozen=True, slots=True)
class _Event:
    pull_request: _PullRequest | None = None
    workflow_run: _WorkflowRun | None = None
    merge_group: _MergeGroup | None = None
    repository: _Repository | None = None


def read_event(text: str | bytes, name: str) -> Wanted | MergeGroup | Nothing:
    """Return what the event in ``text`` is about; UsageError, naming it, where it is no event."""
    event = decode_event(
        text,
        name,
        _Event,
        "Run it in a workflow (GITHUB_EVENT_PATH), or name the pull request: --pull NUMBER",
    )
    if event.workflow_run is not None:
        return _of_a_run(event.workflow_run, event.repository, name)
    if event.merge_group is not None:
        group = event.merge_group
        return MergeGroup(full_sha(group.head_sha, name), full_sha(group.base_sha, name))
    if event.pull_request is not None:
        number = event.pull_request.number
        if number < 1:  # 0 is how ``Wanted`` says that GitHub is to be asked
            raise UsageError(
                "bad-event",
                f"{name} is no event of GitHub Actions: its pull request is number {number}",
                "Run it in a workflow (GITHUB_EVENT_PATH), or name the pull request: --pull NUMBER",
            )
        head = event.pull_request.head
        own = _is_own(head.repo, event.repository)
        return Wanted(number, full_sha(head.sha, name), own=own)
    return Nothing("this event has no pull request")


def decode_event(text: str | bytes, name: str, kind: type[T], advice: str) -> T:
    """Return an event's parts; UsageError, naming it, where ``text`` is no event."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(
            "bad-event", f"{name} is no event of GitHub Actions: {clean_line(str(error))}", advice
        ) from error


def full_sha(text: str, name: str) -> str:
    """Return ``text``, a commit's whole SHA; UsageError on anything else."""
    if SHA.fullmatch(text) is None:
        raise UsageError(
            "bad-sha",
            f"{name}: {clean_line(text, 80)!r} is no commit's SHA",
            "Give all its 40 hexadecimal digits: git rev-parse HEAD",
        )
    return text


def _of_a_run(
    run: _WorkflowRun, here: _Repository | None, name: str
) -> Wanted | MergeGroup | Nothing:
    """``workflow_run.pull_requests`` is empty for forks: the branch is what can be asked for.

    A run of ``pull_request_target`` has the base's head commit, and rights: it isn't stage 1.
    """
    if run.event not in {"pull_request", "merge_group"}:
        said = clean_line(run.event, 60)
        return Nothing(f"the run was started by `{said}`, not by `pull_request` or `merge_group`")
    if run.head_repository is None or not run.head_branch:
        return Nothing("the repository or the branch that was measured is gone")
    source = run.head_repository
    if run.event == "merge_group":
        if here is None or not same_name(source.full_name, here.full_name):
            return Nothing("the merge group is another repository's")
        branch = _QUEUED.fullmatch(run.head_branch)
        return MergeGroup(full_sha(run.head_sha, name), branch[1] if branch else "")
    return Wanted(
        head_sha=full_sha(run.head_sha, name),
        branch=f"{source.owner.login}:{run.head_branch}",
        source=source.full_name,
        own=_is_own(source, here),
    )


def _is_own(source: _Repository | None, here: _Repository | None) -> bool:
    """Say whether a head is the repository's own; where either isn't known it is a fork's."""
    if source is None or here is None:
        return False
    return same_name(source.full_name, here.full_name)


def same_name(one: str, other: str) -> bool:
    """Say whether two names are one repository's: GitHub's ignore case."""
    return one.casefold() == other.casefold()
