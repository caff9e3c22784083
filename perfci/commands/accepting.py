"""Accepted regressions: the entries that accept them, their authors, and which count here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from perfci.config.loading import parse_config
from perfci.errors import UsageError
from perfci.files import read_regular
from perfci.forges.base import read_identity
from perfci.forges.comment_commands import (
    AcceptRequest,
    MeasureRequest,
    UnreadableCommand,
    accept_refusal,
    read_commands,
)
from perfci.forges.rest import Refused
from perfci.measure.checkout.commits import author_of, file_at
from perfci.measure.checkout.git import Repository, ResolvedRev
from perfci.model.words import words
from perfci.report.clean import clean_line
from perfci.verdict.acceptance import Acceptance, accept

if TYPE_CHECKING:
    from perfci.forges import Forge
    from perfci.forges.base import Pull
    from perfci.forges.github import GitHubClient
    from perfci.measure.workplace import SessionContext
    from perfci.model.report import Report
    from perfci.outputs import Say


def accepting(
    context: SessionContext,
    report: Report,
    base: ResolvedRev | None,
    *,
    whole: bool,
) -> Report:
    """Return the report with the rows marked that the configuration accepts.

    ``base`` is the commit that head is compared with, None for stored baselines. ``whole``: all
    cases were asked for, so that a line which names none is worth a note.
    """
    lines = context.config.accept
    if not lines:
        return report
    lines = with_authors(lines, context.repository.root)
    before = _on_base(context.repository, lines, base)
    old = [line for line in lines if any(line.says_as(earlier) for earlier in before)]
    fork = _is_of_a_fork(context.inherited)
    rows, findings = accept(
        report.results,
        lines,
        report.created_at[:10],
        refused=[line for line in lines if fork and line not in old],
        old=old,
        whole=whole and not report.interrupted,
    )
    return replace(
        report,
        results=rows,
        findings=(*report.findings, *findings),
        notes=(*report.notes, *map(words, findings)),
    )


def with_authors(lines: Sequence[Acceptance], root: Path) -> tuple[Acceptance, ...]:
    """Return ``lines`` with each author as git knows it, where the line itself names none."""
    return tuple(
        replace(line, by=author_of(root, Path(line.file).absolute(), line.first, line.last))
        if line.file and not line.by
        else line
        for line in lines
    )


def accepted_in_comments(client: Forge, pull: Pull, say: Say) -> tuple[Acceptance, ...]:
    """Return what maintainers accepted in comments on the head of ``pull``.

    The comments themselves are the record, so nothing that a workflow stored is believed. A check
    of the head shows since when its numbers could be read.
    """
    commands = [(comment, read_commands(comment.body)) for comment in client.comments(pull.number)]
    commands = [(comment, what) for comment, what in commands if _asks_to_accept(what)]
    runs = client.check_runs
    if not commands:
        return ()
    if runs is None:
        why = f"{client.service.name} has no checks that say since when a commit has its numbers"
        say(f"no command is read: {why}. A table of the configuration accepts", err=True)
        return ()
    since = measured_since(runs, pull)
    allowed: dict[str, str] = {}
    lines = []
    for comment, what in commands:
        who = clean_line(comment.author, 80)
        if isinstance(what, UnreadableCommand):
            say(f"the command of {who} isn't read: {what.why}", err=True)
            continue
        if not comment.bot and comment.author not in allowed:
            allowed[comment.author] = runs.permission(comment.author)
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


def _asks_to_accept(what: tuple[AcceptRequest | MeasureRequest, ...] | UnreadableCommand) -> bool:
    return isinstance(what, UnreadableCommand) or any(
        not isinstance(command, MeasureRequest) for command in what
    )


def accepted_where_allowed(client: Forge, pull: Pull, say: Say) -> tuple[Acceptance, ...]:
    """Return what comments accept, or nothing where the token may not ask who is a maintainer."""
    try:
        return accepted_in_comments(client, pull, say)
    except Refused as failure:  # the report is posted all the same
        say(f"no command is read, because the token may not: {failure.message}", err=True)
        return ()


def measured_since(runs: GitHubClient, pull: Pull) -> str:
    """Return when the first check of the head of ``pull`` was set, or nothing without a check."""
    times = []
    for run in runs.checks(pull.head_sha):
        own = read_identity(run.external_id)
        if own is not None and own.pull == pull.number and run.completed_at:
            times.append(run.completed_at)
    return min(times, default="")


def today() -> str:
    """Return the day in UTC, as ISO 8601."""
    return datetime.now(UTC).date().isoformat()  # noqa: TID251 (a limit in time is held to it)


def _on_base(
    repository: Repository, lines: Sequence[Acceptance], base: ResolvedRev | None
) -> tuple[Acceptance, ...]:
    """Return what base's own configuration accepts, or nothing where it can't be read."""
    file = next((line.file for line in lines if line.file), "")
    if base is None or not file:
        return ()
    path = PurePath(Path(file).absolute())
    if not path.is_relative_to(repository.root):
        return ()
    text = file_at(repository, base.commit, path.relative_to(repository.root).as_posix())
    try:
        return parse_config(text, file).accept if text is not None else ()
    except UsageError:  # a configuration that was mended since
        return ()


def _is_of_a_fork(environment: Mapping[str, str]) -> bool:
    """Return whether this is a job of a fork's pull request. An unreadable event counts as one."""
    from perfci.forges import gitlab

    event_path = environment.get("GITHUB_EVENT_PATH", "")
    if gitlab.is_of_a_fork(environment):
        return True
    if not event_path:
        return False
    from perfci.forges.actions import read_event
    from perfci.forges.base import PostTarget

    try:
        event = read_event(read_regular(Path(event_path)), event_path)
    except (OSError, UsageError):
        return True
    return isinstance(event, PostTarget) and not event.own
