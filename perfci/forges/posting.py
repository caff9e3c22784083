"""Posts a report to GitHub: look at it, decide, write one thing, and look again.

A write whose answer is lost may have been done. So no write is simply repeated. After a failure,
the loop looks at GitHub again, and sees if the write was done after all. The pull request's head
is checked just before each write. If a push comes in between the check and the write, then that
push's own run writes over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perfci.errors import UsageError
from perfci.forges.base import (
    NAME,
    SHA,
    AmbiguousPull,
    CheckContent,
    Decision,
    MergeGroup,
    NothingToPost,
    PostTarget,
    Pull,
    choose,
    decide,
    limited_by,
    post_refusal,
    read_identity,
)
from perfci.forges.rest import Refused
from perfci.model.report import Report
from perfci.report.clean import clean_line
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.forges.github import CheckAnswer, GitHubClient

_ANNOTATIONS_PER_REQUEST = 50
"""Annotations that GitHub takes at once."""
_PARENTS_OF_A_MERGE = 2


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """The outcome of posting a comment or a check.

    ``refused``: the token lacks the right. ``stale``: the pull request has moved on. Nothing was
    written.
    """

    kind: Literal["posted", "refused", "stale"]
    text: str


def find_pull(
    client: GitHubClient, wanted: PostTarget | MergeGroup
) -> Pull | MergeGroup | AmbiguousPull | NothingToPost:
    """Return the pull request as GitHub has it now, or why there is nothing to post to.

    A merge group is returned as it is, because it never changes.
    """
    if isinstance(wanted, MergeGroup):
        return wanted
    if not wanted.number:
        return choose(client.open_pulls(wanted.branch), wanted)
    pull = client.pull(wanted.number)
    return post_refusal(pull, wanted.head_sha or pull.head_sha) or pull


def require_measured(
    client: GitHubClient, measured: Sequence[str], target: Pull | MergeGroup
) -> None:
    """Raise UsageError unless each of the commits ``measured`` is the head of ``target``.

    `actions/checkout` checks out the merge of a pull request into its base. So a commit is accepted
    if its parents show that it is a merge of the head. The pull request's ``merge_commit_sha`` is
    no help: it belongs to the base's present tip, and may have been another one at the measurement.
    Of a merge group, the head itself is checked out. A child of the head is the next group's.
    """
    head_sha = target.head_sha
    merged = isinstance(target, Pull)
    wanted = f"neither {head_sha[:12]} nor a merge of it" if merged else f"not {head_sha[:12]}"
    for sha in dict.fromkeys(measured):
        if sha == head_sha or (merged and _is_merge(client, sha, head_sha)):
            continue
        raise UsageError(
            "other-head",
            f"the report is of {clean_line(sha, 40) or 'no commit'}, which is {wanted}",
            "Hand over the report of the run that the event is about, and of a commit.",
        )


def _is_merge(client: GitHubClient, sha: str, head_sha: str) -> bool:
    """Return whether ``sha`` is a merge of the head as GitHub makes it.

    Such a merge has two parents, the target first and the head second. A commit on top of the head,
    as in a stacked pull request, has the head as its first parent.
    """
    # only a whole SHA is asked for: what a report says must not become another request
    if SHA.fullmatch(sha) is None:
        return False
    parents = client.parents(sha)
    return len(parents) == _PARENTS_OF_A_MERGE and parents[1] == head_sha


def with_other_checks(
    client: GitHubClient, target: Pull | MergeGroup, check: CheckContent
) -> CheckContent:
    """Return ``check`` as it may stand next to the checks of its name on ``target``'s head.

    The newest check of each other pull request counts, while that is open and has this head.
    """
    try:
        runs = client.checks(target.head_sha)
    except Refused:  # no right to checks: none will be set
        return check
    number = target.number if isinstance(target, Pull) else 0
    newest: dict[int, str] = {}
    for run in sorted(runs, key=lambda run: run.id):
        own = read_identity(run.external_id)
        if own is not None and own.pull not in {0, number}:
            newest[own.pull] = own.conclusion
    worse = [
        (other, concluded)
        for other, concluded in newest.items()
        if concluded != "success" and post_refusal(client.pull(other), target.head_sha) is None
    ]
    unknown = any(read_identity(run.external_id) is None for run in runs)
    return limited_by(check, worse, unknown=unknown)


def leave_comment(
    client: GitHubClient, pull: Pull, author: str, body: str, *, dry_run: bool = False
) -> PostOutcome:
    """Leave ``body`` as the one comment of ``author`` on ``pull``, whose head was measured."""

    def look_and_write() -> PostOutcome:
        decision = decide(client.comments(pull.number), author, body)
        if dry_run:
            return PostOutcome("posted", f"would {_words(decision)} on #{pull.number}")
        refusal = post_refusal(client.pull(pull.number), pull.head_sha)
        if refusal is not None:
            return PostOutcome("stale", refusal.reason)
        return PostOutcome("posted", _carry_out(client, pull.number, decision, body))

    try:
        return client.retry(look_and_write)
    except Refused as failure:
        return PostOutcome("refused", failure.message)


def set_check(
    client: GitHubClient, head_sha: str, check: CheckContent, *, dry_run: bool = False
) -> PostOutcome:
    """Set the check run of ``head_sha``."""
    if dry_run:
        lines = counted(len(check.annotations), "annotation")
        return PostOutcome(
            "posted", f"would set check `{NAME}` of {head_sha[:12]} to {check.conclusion}, {lines}"
        )
    try:
        return _set_check_run(client, head_sha, check)
    except Refused as failure:
        return PostOutcome("refused", failure.message)


def _words(decision: Decision) -> str:
    twins = f" and delete {counted(len(decision.twins), 'twin')}" if decision.twins else ""
    return f"{decision.action} the comment{twins}"


def _carry_out(client: GitHubClient, number: int, decision: Decision, body: str) -> str:
    old = decision.comment
    if old is None:
        text = f"comment created: {client.create_comment(number, body)}"
    elif decision.action == "update":
        text = f"comment updated: {client.update_comment(old, body)}"
    else:
        text = f"comment is up to date: {old.html_url}"
    for twin in decision.twins:
        client.delete_comment(twin)
    deleted = f"; {counted(len(decision.twins), 'twin')} deleted" if decision.twins else ""
    return clean_line(text) + deleted


def _set_check_run(client: GitHubClient, head_sha: str, check: CheckContent) -> PostOutcome:
    """Create the run with its first annotations, then add the others in batches.

    GitHub counts the annotations that are there. After a failure, its count shows whether a batch
    arrived.
    """

    def look_and_write() -> PostOutcome:
        run = _posted(client, head_sha, check.identity)
        there = run.output.annotations_count if run else 0
        while run is None or there < len(check.annotations):
            batch = check.annotations[there : there + _ANNOTATIONS_PER_REQUEST]
            if run is None:
                run = client.create_check(head_sha, check, batch)
            else:
                client.annotate(run.id, check, batch)
            there += len(batch)
        where = f": {run.html_url}" if run.html_url else ""
        return PostOutcome("posted", clean_line(f"check is {check.conclusion}{where}"))

    return client.retry(look_and_write)


def _posted(client: GitHubClient, head_sha: str, identity: str) -> CheckAnswer | None:
    runs = client.checks(head_sha)
    return next((run for run in runs if run.external_id == identity), None)


def caveat_of_base(client: GitHubClient, target: Pull | MergeGroup, report: Report) -> str:
    """Return why the base of ``report`` isn't that of ``target``, or an empty text.

    Only reports of `compare` are checked. The commit of a stored baseline needn't be in the pull
    request's history. ``require_measured`` must have checked the head of ``report`` before.
    """
    if report.command != "compare":
        return ""
    if isinstance(target, MergeGroup):
        return _caveat_of_group(target, report)
    return _caveat_of_pull(client, target, report)


def _caveat_of_group(group: MergeGroup, report: Report) -> str:
    if not group.base_sha:
        return "with which commit to compare isn't known: the merge group's branch names none"
    base = report.base.sha if report.base else ""
    if base == group.base_sha:
        return ""
    return (
        f"compared with {clean_line(base[:12]) or 'no commit'}, but the merge group is built on "
        f"{group.base_sha[:12]}"
    )


def _caveat_of_pull(client: GitHubClient, pull: Pull, report: Report) -> str:
    base, target = report.base.sha if report.base else "", clean_line(pull.target, 100)
    try:
        left = client.merge_base(pull.target, report.head.sha)
        if left and (base == left or _is_between(client, left, base, pull.target)):
            return ""
    except Refused:
        return f"with which commit of {target} to compare isn't known: the token may not read them"
    there = left[:12] or "no commit that GitHub knows"
    return (
        f"compared with {clean_line(base[:12]) or 'no commit'}, but the pull request leaves "
        f"{target} at {there}"
    )


def _is_between(client: GitHubClient, left: str, base: str, target: str) -> bool:
    """Return whether ``base`` is on the target, from ``left`` to its tip."""
    # only a whole SHA is asked for: what a report says must not become another request
    return (
        SHA.fullmatch(base) is not None
        and client.is_ancestor(base, target)
        and client.is_ancestor(left, base)
    )
