"""Posting a comment and its check where they belong, and saying what became of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.accepting import accepted_where_allowed
from perfci.errors import OutsideError, PerfciError
from perfci.files import write_file
from perfci.forges.github import step
from perfci.notices import Say
from perfci.outputs import unwritable
from perfci.report.clean import clean_line
from perfci.report.links import NO_LINKS, Links, known_links

if TYPE_CHECKING:
    from perfci.commands.comment import CommentRequest, RequestedAnswer
    from perfci.forges.check import CheckContent, Posting
    from perfci.forges.forge import Forge
    from perfci.forges.github.event import MergeGroup, Nothing, Wanted
    from perfci.forges.posting import Outcome
    from perfci.forges.pull import Pull, Several
    from perfci.forges.step import Place
    from perfci.model.report import Report
    from perfci.verdict.acceptance import Acceptance


def post(
    request: CommentRequest,
    place: Place,
    client: Forge,
    wanted: Wanted | MergeGroup,
    reports: list[Report],
    body: str,
    say: Say,
    judged: Callable[[Sequence[Acceptance]], list[Report]],
    *,
    strict: bool,
) -> list[Report]:
    """Leave the reports where they belong, and return them as they were judged in the end.

    ``judged`` returns them judged again with what comments accept.
    """
    from perfci.forges.check import check_content
    from perfci.forges.github.event import MergeGroup, Nothing
    from perfci.forges.posting import find_pull, require_measured
    from perfci.forges.pull import Pull, Several
    from perfci.forges.rest import Refused

    file, dry_run = request.body_file, request.dry_run
    try:
        target = find_pull(client, wanted)
        if isinstance(target, (Nothing, Several)):
            _leave_failure(client, place, target, say, wanted=request.check, dry_run=dry_run)
            why = target.text if isinstance(target, Nothing) else target.reason
            say(f"nothing posted: {why}", err=True)
            return reports
        require_measured(client, [report.head.sha for report in reports], target)
        if isinstance(target, Pull) and any(report.verdict.status == "fail" for report in reports):
            accepted = accepted_where_allowed(client, target, say)
            reports = judged(accepted) if accepted else reports
    except Refused as failure:
        unsaid = _say_refused(failure.message, body, file, say)
        if unsaid is not None:
            raise unsaid from failure
        return reports
    reports, links = _of_the_base(request, place, client, target, reports)
    body = written_body(file, reports, target.head_sha, links)
    write_page(request.page_file, reports)
    content = (
        check_content(reports, body, place.run_url(), _posting_of(place, target), strict=strict)
        if request.check
        else None
    )
    if isinstance(target, MergeGroup):
        _leave_check(client, target, content, body, file, say, dry_run=dry_run)
    else:
        _leave_both(client, target, content, body, file, request.author, say, dry_run=dry_run)
    return reports


def _of_the_base(
    request: CommentRequest,
    place: Place,
    client: Forge,
    target: Pull | MergeGroup,
    reports: Sequence[Report],
) -> tuple[list[Report], Links]:
    """Return the reports with what is to be said of their base, and where a comment may link."""
    from perfci.forges.forge import caveat_of_base
    from perfci.verdict.enforcement import with_caveat

    known, held = {target.head_sha}, list(reports)
    if not request.any_base:
        caveats = [caveat_of_base(client, target, report) for report in reports]
        known |= {
            report.base.sha
            for report, caveat in zip(reports, caveats, strict=True)
            if report.base and report.command == "compare" and not caveat
        }
        held = [with_caveat(*pair) for pair in zip(reports, caveats, strict=True)]
    repository = place.repository_url(request.repository)
    return held, known_links(repository, frozenset(known), request.details, place.addresses)


def post_answer(
    request: CommentRequest,
    place: Place,
    client: Forge,
    answer: RequestedAnswer,
    reports: list[Report],
    say: Say,
) -> list[Report]:
    """Leave the reports as the answer to the comment that asked for them, and return them as shown.

    They are of the commit that was requested, even where the pull request's head has moved since.
    """
    from perfci.forges.github.on_demand import answered
    from perfci.forges.posting import leave_answer, require_measured

    pull = replace(client.pull(answer.pull), head_sha=answer.head_sha)
    require_measured(client, [report.head.sha for report in reports], pull)
    reports, links = _of_the_base(request, place, client, pull, reports)
    body = written_body(request.body_file, reports, pull.head_sha, links)
    write_page(request.page_file, reports)
    link = links.comment(answer.pull, answer.comment)
    body = answered(body, answer.comment, link)
    author = request.author or client.login()
    left = leave_answer(
        *(client, answer.pull, answer.comment, author, body), dry_run=request.dry_run
    )
    if left.kind != "refused":
        say_outcome(left, say)
    elif unsaid := _say_refused(left.text, body, request.body_file, say):
        raise unsaid
    return reports


def fail_the_answer(
    why: str,
    request: CommentRequest,
    place: Place,
    answer: RequestedAnswer,
    connect: Callable[[], Forge],
    say: Say,
) -> None:
    """Say in the answer that there are no numbers. Raises nothing, as ``fail_the_check``."""
    from perfci.forges.github.on_demand import unmeasured_body
    from perfci.forges.posting import leave_answer

    body = unmeasured_body(answer.comment, why, place.run_url())
    try:
        with closing(connect()) as client:
            left = leave_answer(
                *(client, answer.pull, answer.comment, request.author or client.login(), body),
                dry_run=request.dry_run,
            )
        say(left.text if left.kind != "refused" else f"no answer: {left.text}", err=True)
    except PerfciError as another:
        say(f"no answer: {clean_line(another.message, 600)}", err=True)


def fail_the_check(
    why: str,
    place: Place,
    find_wanted: Callable[[], Wanted | MergeGroup | Nothing],
    connect: Callable[[], Forge],
    *,
    dry_run: bool,
) -> Outcome | None:
    """Fail the check of the commit that the event names. None where it names no commit.

    It raises nothing, because the caller raises the error of the unreadable report.
    """
    from perfci.forges.check import unreadable_content
    from perfci.forges.github.event import Nothing
    from perfci.forges.posting import Outcome, find_pull, set_check

    try:
        wanted = find_wanted()
        if isinstance(wanted, Nothing) or not wanted.head_sha:
            return None
        with closing(connect()) as client:
            target = find_pull(client, wanted)
            if isinstance(target, Nothing):
                return Outcome("stale", target.text)
            posting = _posting_of(place, target)
            content = unreadable_content(why, place.run_url(), posting)
            return set_check(client, target.head_sha, content, dry_run=dry_run)
    except PerfciError as another:
        return Outcome("refused", clean_line(another.message, 600))


def written_body(
    body_file: Path, reports: Sequence[Report], head_sha: str, links: Links = NO_LINKS
) -> str:
    """Write the comment's text, and return it."""
    from perfci.report.exporters.markdown import render_comment

    body = render_comment(reports, head_sha=head_sha, links=links)
    try:
        body_file.parent.mkdir(parents=True, exist_ok=True)
        write_file(body_file, body)
    except OSError as error:
        raise unwritable(body_file, error, "Nothing was posted.") from error
    return body


def write_page(page_file: Path | None, reports: Sequence[Report]) -> None:
    """Write the reports' pages, as they were judged: each after the first with its number."""
    if page_file is None:
        return
    from perfci.report.exporters.html import render as render_page

    for number, report in enumerate(reports, 1):
        name = page_file.stem if number == 1 else f"{page_file.stem}-{number}"
        file = page_file.with_name(name + page_file.suffix)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(file, render_page(report))
        except OSError as error:
            raise unwritable(file, error, "Nothing was posted.") from error


def _posting_of(place: Place, target: Pull | MergeGroup | Several) -> Posting:
    """Return what a check of ``found`` is of, and which attempt of a run sets it."""
    from perfci.forges.check import Posting
    from perfci.forges.pull import Pull

    if isinstance(target, Pull):
        return Posting(target.number, target.target, place.attempt(), target.term.sign)
    return Posting(attempt=place.attempt())


def _leave_failure(
    client: Forge, place: Place, target: Nothing | Several, say: Say, *, wanted: bool, dry_run: bool
) -> None:
    """Fail the check, where one is ``wanted``, of a commit that several pull requests have."""
    from perfci.forges.check import unreadable_content
    from perfci.forges.posting import set_check
    from perfci.forges.pull import Several

    if not wanted or not isinstance(target, Several):
        return
    content = unreadable_content(target.reason, place.run_url(), _posting_of(place, target))
    say_outcome(set_check(client, target.head_sha, content, dry_run=dry_run), say)


def _leave_both(
    client: Forge,
    pull: Pull,
    check: CheckContent | None,
    body: str,
    body_file: Path,
    author: str | None,
    say: Say,
    *,
    dry_run: bool,
) -> None:
    """Leave the comment ``body`` on ``pull``, and the check unless that is None."""
    from perfci.forges.posting import beside_others, leave_comment, set_check

    unsaid = None

    def set_the_check() -> None:
        if check is not None:
            shown = beside_others(client, pull, check)
            say_outcome(set_check(client, pull.head_sha, shown, dry_run=dry_run), say)

    try:
        left = leave_comment(client, pull, author or client.login(), body, dry_run=dry_run)
    except OutsideError:
        step.summarise(body, body_file, say)
        try:
            set_the_check()  # it is what gates; that the comment failed is said all the same
        except OutsideError as another:
            say(f"check not set: {clean_line(another.message, 600)}", err=True)
        raise
    if left.kind == "refused":
        unsaid = _say_refused(left.text, body, body_file, say)
    else:
        say_outcome(left, say)
    if left.kind != "stale":
        set_the_check()
    if unsaid is not None:
        raise unsaid


def _leave_check(
    client: Forge,
    group: MergeGroup,
    check: CheckContent | None,
    body: str,
    body_file: Path,
    say: Say,
    *,
    dry_run: bool,
) -> None:
    """Set the check of a merge group, which has no pull request to comment on."""
    from perfci.forges.posting import beside_others, set_check

    if check is None:
        say("nothing posted: a merge group can't be commented on", err=True)
        return
    try:
        shown = beside_others(client, group, check)
        left = set_check(client, group.head_sha, shown, dry_run=dry_run)
    except OutsideError:
        step.summarise(body, body_file, say)
        raise
    say_outcome(left, say)
    unsaid = step.summarise(body, body_file, say) if left.kind == "refused" else None
    if unsaid is not None:
        raise unsaid


def say_outcome(outcome: Outcome, say: Say) -> None:
    """Say what became of a comment or a check."""
    before = {"posted": "", "refused": "check not set: ", "stale": "nothing posted: "}
    say(before[outcome.kind] + outcome.text, err=outcome.kind != "posted")


def _say_refused(why: str, body: str, body_file: Path, say: Say) -> OutsideError | None:
    """Report that the token may not comment, and return why the summary page lacks the text."""
    say(f"comment not posted, the token may not: {why}", err=True)
    return step.summarise(body, body_file, say)
