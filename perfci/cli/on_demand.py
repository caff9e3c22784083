"""``perfci on-demand``: whether a comment has its pull request measured. It wants a token."""

from __future__ import annotations

from pathlib import Path

import click

from perfci.cli.options import posting_options
from perfci.cli.printing import say
from perfci.report.clean import clean_line


@click.command(
    "on-demand",
    epilog="Example: perfci on-demand, in a workflow `on: issue_comment`\n\n"
    "Exit codes: 0 asked for or not; 2 usage; 4 GitHub or the disk failed.",
)
@posting_options
def command(
    event_path: Path | None, repository: str | None, author: str | None, patience: float
) -> None:
    """Say whether a comment `/perfci -k EXPR` has its pull request measured, and what.

    Where its author may write to the repository: leaves a reaction and an answer, and sets the
    step's outputs number, comment, base, head and selection. Of anybody else's, and of any other
    comment, it sets and leaves nothing; why is on standard error.
    """
    from perfci.commands.on_demand import OnDemandRequest, on_demand

    found = on_demand(OnDemandRequest(event_path, repository, author, patience), say)
    if found is not None:
        sides = f"{found.base_sha} {found.head_sha}"
        say(f"to measure: {sides} -k {clean_line(repr(found.selection), 400)}")
