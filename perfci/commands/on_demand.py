"""``on-demand``: decides whether a comment has its pull request measured, and what."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.errors import UsageError
from perfci.files import require_file
from perfci.forges import actions
from perfci.forges.base import SHA, Comment, NothingToPost
from perfci.forges.comment_commands import (
    MeasureRequest,
    OnDemandRun,
    UnreadableCommand,
    may_write,
    measure_refusal,
    measuring_body,
    read_asking,
    read_commands,
)
from perfci.forges.posting import leave_answer
from perfci.forges.rest import Missing, Refused
from perfci.measure.selection import select
from perfci.outputs import writing
from perfci.report.clean import clean_line

if TYPE_CHECKING:
    from perfci.forges.github import GitHubClient
    from perfci.outputs import Say


@dataclass(frozen=True, slots=True)
class OnDemandRequest:
    """The event of a comment, and the account of the token."""

    event: Path | None = None
    repository: str | None = None
    author: str | None = None
    most_wait_s: float = 120.0


def on_demand(request: OnDemandRequest, say: Say) -> OnDemandRun | None:
    """Return what the event's comment has measured, and answer it. None where it asks for nothing.

    The result becomes the step's outputs, which are empty without one. A comment whose author may
    not ask gets no answer.
    """

    if request.event is None:
        raise UsageError(
            "no-event",
            "no comment is named",
            "Run it in a workflow `on: issue_comment`, which sets GITHUB_EVENT_PATH.",
        )
    advice = "Name the event's file: --event."
    asking = read_asking(actions.read_input(request.event, advice), str(request.event))
    if isinstance(asking, NothingToPost):
        say(f"nothing is measured: {asking.reason}", err=True)
        return None
    selections = _selections(asking.body)
    if not selections:
        say("nothing is measured: the comment doesn't ask for it", err=True)
        return None
    with closing(actions.client(request.repository, request.most_wait_s)) as client:
        measuring = _acknowledged(client, asking, selections, say)
        if measuring is None:
            return None
        _answer(client, request.author or client.login(), measuring, say)
    set_outputs(
        {
            "number": str(measuring.number),
            "comment": str(measuring.comment),
            "base": measuring.base_sha,
            "head": measuring.head_sha,
            "selection": measuring.selection,
        }
    )
    return measuring


def _selections(body: str) -> list[str] | UnreadableCommand:
    """Return the selections that a comment asks to measure."""

    commands = read_commands(body)
    if isinstance(commands, UnreadableCommand):
        return commands
    return [command.selection for command in commands if isinstance(command, MeasureRequest)]


def _acknowledged(
    client: GitHubClient, asking: Comment, selections: list[str] | UnreadableCommand, say: Say
) -> OnDemandRun | None:
    """Return what is measured, after a reaction to the comment. None where nothing is."""

    permission = "" if asking.bot else client.permission(asking.author)
    measuring = (
        selections.why
        if isinstance(selections, UnreadableCommand)
        else _measuring(client, asking, selections, permission)
    )
    if isinstance(measuring, str):
        who = clean_line(asking.author, 80)
        say(f"the command of {who} has nothing measured: {measuring}", err=True)
        if may_write(asking, permission):
            _react(client, asking, "confused", say)
        return None
    try:
        _react(client, asking, "eyes", say)
    except Missing:
        say("nothing is measured: the comment was deleted", err=True)
        return None
    return measuring


def _measuring(
    client: GitHubClient, asking: Comment, selections: list[str], permission: str
) -> OnDemandRun | str:
    """Return what is measured, or the reason for nothing."""

    pull = client.pull(asking.pull)
    why = measure_refusal(asking, pull, permission)
    if why:
        return why
    if len(selections) > 1:
        return "it has several selections; join them by `or`"
    try:
        select((), selections[0])
    except UsageError as error:
        return error.message
    base = client.leaves(pull, pull.head_sha)
    if SHA.fullmatch(base) is None or SHA.fullmatch(pull.head_sha) is None:
        return "the pull request has no commit in common with its target"
    return OnDemandRun(asking.pull, asking.id, base, pull.head_sha, selections[0])


def _react(client: GitHubClient, asking: Comment, content: str, say: Say) -> None:
    try:
        client.retry(lambda: client.react(asking.id, content))
    except Refused as failure:  # the measurement doesn't depend on it
        say(f"no reaction, because the token may not: {failure.message}", err=True)


def _answer(client: GitHubClient, author: str, measuring: OnDemandRun, say: Say) -> None:
    """Answer that it is measured, where the numbers will be."""

    body = measuring_body(measuring, actions.run_url())
    left = leave_answer(client, measuring.number, measuring.comment, author, body)
    refused = left.kind == "refused"  # the measurement doesn't depend on it
    say(f"no answer, because the token may not: {left.text}" if refused else left.text, err=refused)


def set_outputs(values: Mapping[str, str]) -> None:
    """Set the step's outputs, or nothing outside of Actions.

    The delimiter can't be guessed, so no value can end itself and begin another one.
    """
    named = os.environ.get("GITHUB_OUTPUT", "")
    if not named:
        return
    lines = []
    for name, value in values.items():
        delimiter = f"perfci-{secrets.token_hex(16)}"
        lines.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    path = Path(named)
    with writing(path, "Nothing is measured."):
        require_file(path)
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))
