"""Posting a comment and its check where they belong, and reporting each outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.accepting import accepted_where_allowed
from perfci.errors import OutsideError, PerfciError
from perfci.files import write_file
from perfci.forges import actions
from perfci.forges.base import (
    AmbiguousPull,
    MergeGroup,
    NothingToPost,
    Posting,
    Pull,
    check_content,
    unreadable_content,
)
from perfci.forges.comment_commands import answered, unmeasured_body
from perfci.forges.posting import (
    PostOutcome,
    caveat_of_base,
    find_pull,
    leave_answer,
    leave_comment,
    require_measured,
    set_check,
    with_other_checks,
)
from perfci.forges.rest import Refused
from perfci.outputs import Say, writing
from perfci.report.clean import clean_line
from perfci.report.exporters.html import render as render_page
from perfci.report.exporters.markdown import render_comment
from perfci.report.links import NO_LINKS, Links, known_links
from perfci.verdict.enforcement import with_caveat

if TYPE_CHECKING:
    from perfci.commands.comment import CommentRequest, RequestedAnswer
    from perfci.forges import CiStep, Forge
    from perfci.forges.base import CheckContent, PostTarget
    from perfci.model.report import Report
    from perfci.verdict.acceptance import Acceptance

_PREFIXES = {"posted": "", "refused": "check not set: ", "stale": "nothing posted: "}


class Poster:
    """Leaves the reports of a request on its forge, and reports each outcome to ``say``."""

    def __init__(self, request: CommentRequest, step: CiStep, say: Say) -> None:
        self._request = request
        self._step = step
        self._say = say

    def wanted(self) -> PostTarget | MergeGroup | NothingToPost:
        """Return the commit to post to, or why there is none."""
        request = self._request
        return self._step.target(request.pull, request.head_sha, request.event)

    def post(
        self,
        reports: list[Report],
        judged: Callable[[Sequence[Acceptance]], list[Report]],
        *,
        strict: bool,
    ) -> list[Report]:
        """Leave the reports where they belong, and return them as they were judged in the end.

        ``judged`` returns them judged again with what comments accept.
        """

        wanted = self.wanted()
        head_sha = "" if isinstance(wanted, NothingToPost) else wanted.head_sha
        body = self._write_body(reports, head_sha)  # first: a token may be unusable
        if isinstance(wanted, NothingToPost):
            self._say(f"nothing posted: {wanted.text}", err=True)
            return reports
        with closing(self._client()) as client:
            return self._post(client, wanted, reports, body, judged, strict=strict)

    def _post(
        self,
        client: Forge,
        wanted: PostTarget | MergeGroup,
        reports: list[Report],
        body: str,
        judged: Callable[[Sequence[Acceptance]], list[Report]],
        *,
        strict: bool,
    ) -> list[Report]:

        try:
            target = find_pull(client, wanted)
            if isinstance(target, (NothingToPost, AmbiguousPull)):
                self._leave_failure(client, target)
                return reports
            require_measured(client, [report.head.sha for report in reports], target)
            if isinstance(target, Pull) and any(
                report.verdict.status == "fail" for report in reports
            ):
                accepted = accepted_where_allowed(client, target, self._say)
                reports = judged(accepted) if accepted else reports
        except Refused as failure:
            unshown = self._say_refused(failure.message, body)
            if unshown is not None:
                raise unshown from failure
            return reports
        reports, links = self._of_the_base(client, target, reports)
        body = self._write_body(reports, target.head_sha, links)
        self._write_pages(reports)
        check = None
        if self._request.check:
            posting = self._posting_of(target)
            check = check_content(reports, body, self._step.run_url(), posting, strict=strict)
        if isinstance(target, MergeGroup):
            self._leave_check(client, target, check, body)
        else:
            self._leave_both(client, target, check, body)
        return reports

    def post_answer(self, answer: RequestedAnswer, reports: list[Report]) -> list[Report]:
        """Leave the reports as the answer to the comment that asked for them, and return them.

        They are of the commit that was requested, even where the pull request's head has moved
        since.
        """

        self._write_body(reports, answer.head_sha)  # first: a token may be unusable
        with closing(self._client()) as client:
            pull = replace(client.pull(answer.pull), head_sha=answer.head_sha)
            require_measured(client, [report.head.sha for report in reports], pull)
            reports, links = self._of_the_base(client, pull, reports)
            body = self._write_body(reports, pull.head_sha, links)
            self._write_pages(reports)
            link = links.comment(answer.pull, answer.comment)
            body = answered(body, answer.comment, link)
            left = leave_answer(
                *(client, answer.pull, answer.comment, self._author(client), body),
                dry_run=self._request.dry_run,
            )
        if left.kind != "refused":
            self._say_outcome(left)
        elif unshown := self._say_refused(left.text, body):
            raise unshown
        return reports

    def fail_answer(self, answer: RequestedAnswer, why: str) -> None:
        """Report in the answer that there are no numbers. It raises nothing, as ``fail_check``."""

        body = unmeasured_body(answer.comment, why, self._step.run_url())
        try:
            with closing(self._client()) as client:
                left = leave_answer(
                    *(client, answer.pull, answer.comment, self._author(client), body),
                    dry_run=self._request.dry_run,
                )
            text = left.text if left.kind != "refused" else f"no answer: {left.text}"
            self._say(text, err=True)
        except PerfciError as another:
            self._say(f"no answer: {clean_line(another.message, 600)}", err=True)

    def fail_check(self, why: str) -> None:
        """Fail the check of the commit that the event names, where it names one.

        It raises nothing, because the caller raises the error of the unreadable report.
        """

        try:
            wanted = self.wanted()
            if isinstance(wanted, NothingToPost) or not wanted.head_sha:
                return
            with closing(self._client()) as client:
                target = find_pull(client, wanted)
                outcome = (
                    PostOutcome("stale", target.text)
                    if isinstance(target, NothingToPost)
                    else self._set_failed(client, target, why)
                )
        except PerfciError as another:
            outcome = PostOutcome("refused", clean_line(another.message, 600))
        self._say_outcome(outcome)

    def _client(self) -> Forge:
        return self._step.client(self._request.repository, self._request.most_wait_s)

    def _author(self, client: Forge) -> str:
        return self._request.author or client.login()

    def _of_the_base(
        self, client: Forge, target: Pull | MergeGroup, reports: Sequence[Report]
    ) -> tuple[list[Report], Links]:
        """Return the reports with the caveat on their base, and where a comment may link."""

        request = self._request
        known, held = {target.head_sha}, list(reports)
        if not request.any_base:
            caveats = [caveat_of_base(client, target, report) for report in reports]
            known |= {
                report.base.sha
                for report, caveat in zip(reports, caveats, strict=True)
                if report.base and report.command == "compare" and not caveat
            }
            held = list(map(with_caveat, reports, caveats))
        repository = self._step.repository_url(request.repository)
        addresses = self._step.addresses
        return held, known_links(repository, frozenset(known), request.details, addresses)

    def _write_body(self, reports: Sequence[Report], head_sha: str, links: Links = NO_LINKS) -> str:
        """Write the comment's text, and return it."""

        body = render_comment(reports, head_sha=head_sha, links=links)
        _write(self._request.body_file, body)
        return body

    def _write_pages(self, reports: Sequence[Report]) -> None:
        """Write the reports' pages, as they were judged: each after the first with its number."""
        page_file = self._request.page_file
        if page_file is None:
            return

        for number, report in enumerate(reports, 1):
            name = page_file.stem if number == 1 else f"{page_file.stem}-{number}"
            _write(page_file.with_name(name + page_file.suffix), render_page(report))

    def _posting_of(self, target: Pull | MergeGroup | AmbiguousPull) -> Posting:
        """Return what a check of ``target`` is of, and which attempt of a run sets it."""

        attempt = self._step.attempt()
        if isinstance(target, Pull):
            return Posting(target.number, target.target, attempt, target.term.sign)
        return Posting(attempt=attempt)

    def _set_failed(
        self, client: Forge, target: Pull | MergeGroup | AmbiguousPull, why: str
    ) -> PostOutcome:

        content = unreadable_content(why, self._step.run_url(), self._posting_of(target))
        return set_check(client, target.head_sha, content, dry_run=self._request.dry_run)

    def _leave_failure(self, client: Forge, target: NothingToPost | AmbiguousPull) -> None:
        """Fail the check, where one is wanted, of a commit that several pull requests have."""

        if isinstance(target, AmbiguousPull):
            if self._request.check:
                self._say_outcome(self._set_failed(client, target, target.reason))
            self._say(f"nothing posted: {target.reason}", err=True)
        else:
            self._say(f"nothing posted: {target.text}", err=True)

    def _leave_both(self, client: Forge, pull: Pull, check: CheckContent | None, body: str) -> None:
        """Leave the comment ``body`` on ``pull``, and the check unless that is None."""

        unshown = None
        try:
            left = leave_comment(
                client, pull, self._author(client), body, dry_run=self._request.dry_run
            )
        except OutsideError:
            self._summarise(body)
            try:
                self._set_check(client, pull, check)  # it gates; the comment's failure is raised
            except OutsideError as another:
                self._say(f"check not set: {clean_line(another.message, 600)}", err=True)
            raise
        if left.kind == "refused":
            unshown = self._say_refused(left.text, body)
        else:
            self._say_outcome(left)
        if left.kind != "stale":
            self._set_check(client, pull, check)
        if unshown is not None:
            raise unshown

    def _set_check(self, client: Forge, pull: Pull, check: CheckContent | None) -> None:

        if check is not None:
            shown = with_other_checks(client, pull, check)
            dry_run = self._request.dry_run
            self._say_outcome(set_check(client, pull.head_sha, shown, dry_run=dry_run))

    def _leave_check(
        self, client: Forge, group: MergeGroup, check: CheckContent | None, body: str
    ) -> None:
        """Set the check of a merge group, which has no pull request to comment on."""

        if check is None:
            self._say("nothing posted: a merge group can't be commented on", err=True)
            return
        try:
            shown = with_other_checks(client, group, check)
            left = set_check(client, group.head_sha, shown, dry_run=self._request.dry_run)
        except OutsideError:
            self._summarise(body)
            raise
        self._say_outcome(left)
        unshown = self._summarise(body) if left.kind == "refused" else None
        if unshown is not None:
            raise unshown

    def _summarise(self, body: str) -> OutsideError | None:
        return actions.summarise(body, self._request.body_file, self._say)

    def _say_outcome(self, outcome: PostOutcome) -> None:
        """Report the outcome of a comment or a check."""
        self._say(_PREFIXES[outcome.kind] + outcome.text, err=outcome.kind != "posted")

    def _say_refused(self, why: str, body: str) -> OutsideError | None:
        """Report that the token may not comment, and return why the summary page lacks the text."""
        self._say(f"comment not posted, because the token may not: {why}", err=True)
        return self._summarise(body)


def _write(file: Path, text: str) -> None:
    with writing(file, "Nothing was posted."):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text)
