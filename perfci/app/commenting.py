"""Leaves comment and check as they were made, and says what became of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perfci.app import actions
from perfci.app.notices import Say
from perfci.errors import OutsideError
from perfci.render.clean import clean_line

if TYPE_CHECKING:
    from perfci.publish.github.check import CheckContent, Posting
    from perfci.publish.github.client import Client
    from perfci.publish.github.event import MergeGroup, Nothing
    from perfci.publish.github.posting import Outcome
    from perfci.publish.github.pull import Pull, Several


def posting_of(found: Pull | MergeGroup | Several) -> Posting:
    """Return what a check of ``found`` is of, and which attempt of a run sets it."""
    from perfci.publish.github.check import Posting
    from perfci.publish.github.pull import Pull

    if isinstance(found, Pull):
        return Posting(found.number, found.target, actions.attempt())
    return Posting(attempt=actions.attempt())


def leave_failure(
    client: Client, found: Nothing | Several, say: Say, *, wanted: bool, dry_run: bool
) -> None:
    """Fail the check, where one is ``wanted``, of a commit that several pull requests have."""
    from perfci.publish.github.check import unreadable_content
    from perfci.publish.github.posting import set_check
    from perfci.publish.github.pull import Several

    if not wanted or not isinstance(found, Several):
        return
    content = unreadable_content(found.reason, actions.run_url(), posting_of(found))
    say_outcome(set_check(client, found.head_sha, content, dry_run=dry_run), say)


def leave_both(
    client: Client,
    pull: Pull,
    check: CheckContent | None,
    body: str,
    body_file: Path,
    author: str,
    say: Say,
    *,
    dry_run: bool,
) -> None:
    """Leave the comment ``body`` on ``pull``, and the check unless that is None."""
    from perfci.publish.github.posting import beside_others, leave_comment, set_check

    unsaid = None

    def set_the_check() -> None:
        if check is not None:
            shown = beside_others(client, pull, check)
            say_outcome(set_check(client, pull.head_sha, shown, dry_run=dry_run), say)

    try:
        left = leave_comment(client, pull, author, body, dry_run=dry_run)
    except OutsideError:
        actions.summarise(body, body_file, say)
        try:
            set_the_check()  # it is what gates; that the comment failed is said all the same
        except OutsideError as another:
            say(f"check not set: {clean_line(another.message, 600)}", err=True)
        raise
    if left.kind == "refused":
        unsaid = say_refused(left.text, body, body_file, say)
    else:
        say_outcome(left, say)
    if left.kind != "stale":
        set_the_check()
    if unsaid is not None:
        raise unsaid


def leave_check(
    client: Client,
    group: MergeGroup,
    check: CheckContent | None,
    body: str,
    body_file: Path,
    say: Say,
    *,
    dry_run: bool,
) -> None:
    """Set the check of a merge group, which has no pull request to comment on."""
    from perfci.publish.github.posting import beside_others, set_check

    if check is None:
        say("nothing posted: a merge group can't be commented on", err=True)
        return
    try:
        shown = beside_others(client, group, check)
        left = set_check(client, group.head_sha, shown, dry_run=dry_run)
    except OutsideError:
        actions.summarise(body, body_file, say)
        raise
    say_outcome(left, say)
    unsaid = actions.summarise(body, body_file, say) if left.kind == "refused" else None
    if unsaid is not None:
        raise unsaid


def say_outcome(outcome: Outcome, say: Say) -> None:
    """Say what became of a comment or a check."""
    before = {"posted": "", "refused": "check not set: ", "stale": "nothing posted: "}
    say(before[outcome.kind] + outcome.text, err=outcome.kind != "posted")


def say_refused(why: str, body: str, body_file: Path, say: Say) -> OutsideError | None:
    """Say that the token may not comment; return why the summary page hasn't the text either."""
    say(f"comment not posted, the token may not: {why}", err=True)
    return actions.summarise(body, body_file, say)
