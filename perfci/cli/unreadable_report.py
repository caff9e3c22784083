"""What ``perfci comment`` does where a report can't be read: the check says so.

Else the check of an earlier report of the same commit would stay, and it may be a success.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from perfci.cli import actions
from perfci.errors import PerfciError
from perfci.report.clean import clean_line

if TYPE_CHECKING:
    from perfci.github.client import Client
    from perfci.github.event import MergeGroup, Nothing, Wanted
    from perfci.github.posting import Outcome


def fail_the_check(
    why: str,
    find_wanted: Callable[[], Wanted | MergeGroup | Nothing],
    connect: Callable[[], Client],
    *,
    dry_run: bool,
) -> Outcome | None:
    """Fail the check of the commit that the event names; None where it names none.

    Raises nothing: that the report can't be read is the error that is told in the end.
    """
    from perfci.cli.commenting import posting_of
    from perfci.github.check import unreadable_content
    from perfci.github.event import Nothing
    from perfci.github.posting import Outcome, find_pull, set_check

    try:
        wanted = find_wanted()
        if isinstance(wanted, Nothing) or not wanted.head_sha:
            return None
        with closing(connect()) as client:
            found = find_pull(client, wanted)
            if isinstance(found, Nothing):
                return Outcome("stale", found.reason)
            posting = posting_of(found)
            content = unreadable_content(why, actions.run_url(), posting)
            return set_check(client, found.head_sha, content, dry_run=dry_run)
    except PerfciError as another:
        return Outcome("refused", clean_line(another.message, 600))
