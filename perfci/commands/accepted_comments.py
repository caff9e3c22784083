"""Rows that maintainers accepted in comments on a pull request, read from those comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfci.forges.base import read_identity
from perfci.forges.comment_commands import (
    MeasureRequest,
    UnreadableCommand,
    accept_refusal,
    read_commands,
)
from perfci.forges.rest import Refused
from perfci.outputs import Say
from perfci.report.clean import clean_line
from perfci.verdict.acceptance import Acceptance

if TYPE_CHECKING:
    from perfci.forges.base import Pull
    from perfci.forges.github import GitHubClient


def accepted_in_comments(client: GitHubClient, pull: Pull, say: Say) -> tuple[Acceptance, ...]:
    """Return what maintainers accepted in comments. Empty if the token lacks the right to ask."""
    try:
        return _acceptances(client, pull, say)
    except Refused as failure:  # the report is posted all the same
        say(f"no command is read, because the token may not: {failure.message}", err=True)
        return ()


def _acceptances(client: GitHubClient, pull: Pull, say: Say) -> tuple[Acceptance, ...]:
    """Return what maintainers accepted in comments on the head of ``pull``.

    The comments are read from the forge each time. Nothing that a workflow stored is believed. A
    comment counts only if it is younger than the head's first check, which shows the numbers.
    """
    parsed = [(comment, read_commands(comment.body)) for comment in client.comments(pull.number)]
    # comments with a command to accept, or with a command that can't be read
    commands = [
        (comment, what)
        for comment, what in parsed
        if isinstance(what, UnreadableCommand)
        or not all(isinstance(command, MeasureRequest) for command in what)
    ]
    if not commands:
        return ()
    since = _measured_since(client, pull)
    allowed: dict[str, str] = {}
    lines = []
    for comment, what in commands:
        who = clean_line(comment.author, 80)
        if isinstance(what, UnreadableCommand):
            say(f"the command of {who} isn't read: {what.why}", err=True)
            continue
        if not comment.bot and comment.author not in allowed:
            allowed[comment.author] = client.permission(comment.author)
        why = accept_refusal(comment, pull, allowed.get(comment.author, ""), since)
        if why:
            say(f"the command of {who} accepts nothing: {why}", err=True)
            continue
        lines += [
            Acceptance(acceptance.case, acceptance.metric, acceptance.because, f"@{who}")
            for acceptance in what
            if not isinstance(acceptance, MeasureRequest)
        ]
    return tuple(lines)


def _measured_since(runs: GitHubClient, pull: Pull) -> str:
    """Return the time of perfci's first check of ``pull`` on its head, or an empty text."""
    times = []
    for run in runs.checks(pull.head_sha):
        own = read_identity(run.external_id)
        if own is not None and own.pull == pull.number and run.completed_at:
            times.append(run.completed_at)
    return min(times, default="")
