"""``comment``: posts reports to their pull request, judged again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.compare import with_own_thresholds
from perfci.commands.history import with_past
from perfci.commands.project import configuration, load_report, repository_at
from perfci.commands.run_to_report import today, with_authors
from perfci.errors import OutsideError, PerfciError, UsageError
from perfci.files import write_file
from perfci.forges import actions
from perfci.forges.base import (
    AmbiguousPull,
    CheckContent,
    MergeGroup,
    NothingToPost,
    Posting,
    PostTarget,
    Pull,
    check_content,
    unreadable_content,
)
from perfci.forges.posting import (
    PostOutcome,
    caveat_of_base,
    find_pull,
    leave_comment,
    require_measured,
    set_check,
    with_other_checks,
)
from perfci.forges.rest import Refused
from perfci.measure.plan import files_in
from perfci.measure.selection import by_name, written_in
from perfci.outputs import Say, writing
from perfci.report.clean import clean_line
from perfci.report.exporters.html import render as render_page
from perfci.report.exporters.markdown import render_comment
from perfci.report.links import ADDRESS, NO_LINKS, Links, known_links
from perfci.verdict.acceptance import (
    believed,
    caveat_of_copies,
    enforced,
    with_caveat,
    with_unreported,
)

if TYPE_CHECKING:
    from perfci.forges.github import GitHubClient
    from perfci.model.report import Report

_PREFIXES = {"posted": "", "refused": "check not set: ", "stale": "nothing posted: "}
"""The beginning of an outcome's line, by its kind."""


@dataclass(frozen=True, slots=True)
class CommentRequest:
    """The options of ``comment``.

    ``files`` are the reports, one per environment, or ``unreadable`` is the reason why there are
    none. ``pull`` and ``head_sha`` take precedence over the ``event``. ``author`` is the account
    that the token posts as. ``body_file`` gets the comment's text before anything is posted.
    ``most_wait_s`` bounds all waits for GitHub. ``any_base`` accepts a comparison with any commit.

    ``page_file`` gets the page of the judged report, and ``details`` is the address where that page
    will be, which the comment links. The configuration of the checkout ``root`` judges.
    """

    root: Path
    files: tuple[Path, ...] = ()
    unreadable: str | None = None
    pull: int | None = None
    head_sha: str = ""
    event: Path | None = None
    repository: str | None = None
    author: str = "github-actions[bot]"
    body_file: Path = field(default_factory=lambda: Path("perfci-comment.md"))
    check: bool = True
    most_wait_s: float = 120.0
    history: str | None = None
    any_base: bool = False
    dry_run: bool = False
    strict: bool | None = None
    config_path: Path | None = None
    page_file: Path | None = None
    details: str = ""


def comment(request: CommentRequest, say: Say) -> tuple[list[Report], bool]:
    """Leave the reports as one comment and one check, and report each outcome to ``say``.

    Return the reports as they were judged, and whether an inconclusive report fails the check.

    The measuring job is not believed: every row is judged again by the configuration of ``root``.
    OutsideError if the forge or the disk failed, or a report can't be read.
    """
    if request.details and not ADDRESS.fullmatch(request.details):
        raise UsageError(
            "bad-address",
            f"--details is {request.details[:80]!r}, no plain web address",
            "Give https://HOST/PATH, as upload-artifact's output `artifact-url` is.",
        )
    judge = _Judge(request, say)
    poster = _Poster(request, say)
    try:
        reports = judge.judged(_loaded(request.files, request.unreadable), poster)
    except OutsideError as error:
        if request.check:
            poster.fail_check(error.message)
        raise
    return poster.post(reports, strict=judge.policy.strict), judge.policy.strict


class _Judge:
    """Judges reports by the configuration and the benchmark files of a checkout.

    The checkout is the one that perfci runs in here, never a report's: the measuring job must not
    decide.
    """

    def __init__(self, request: CommentRequest, say: Say) -> None:
        self._request = request
        self._say = say
        self._config = configuration(request.root, request.config_path, strict=request.strict)
        files = files_in(request.root, self._config.benchmarks, self._config.pattern)
        self._written = written_in(request.root, files)  # read, not imported
        self.policy = with_own_thresholds(self._config.policy, by_name(self._written))

    def _believed(self, reports: Sequence[Report], poster: _Poster) -> list[Report]:
        """Return the reports without acceptances that are not the repository's own.

        A merge group counts as the repository's own: only accounts that may write to the repository
        put a fork's change into a queue.
        """
        own = any(row.accepted for report in reports for row in report.results)
        if own:
            target = poster.target()
            own = isinstance(target, MergeGroup) or (isinstance(target, PostTarget) and target.own)
        lines = with_authors(self._config.accept, self._request.root)
        return [believed(report, own, lines, today(), self.policy) for report in reports]

    def judged(self, loaded: Sequence[Report], poster: _Poster) -> list[Report]:
        """Return the reports judged again, with their past."""
        reports = []
        for report in map(self._enforced, self._believed(loaded, poster)):
            copies = caveat_of_copies(report, self._config.installed)
            reports.append(with_caveat(report, copies))
        history = self._request.history
        if not history:
            return reports
        checkout = repository_at(self._request.root)
        aliases = self._config.aliases
        return [with_past(report, history, checkout, aliases, self._say) for report in reports]

    def _enforced(self, report: Report) -> Report:
        reported = {name: benchmark.metrics for name, benchmark in by_name(self._written).items()}
        held = enforced(report, self.policy, reported)
        everywhere = {
            file: [name for name, benchmark in benchmarks.items() if not benchmark.conditional]
            for file, benchmarks in self._written.items()
        }
        return with_unreported(held, everywhere, self.policy)


def _loaded(files: Sequence[Path], unreadable: str | None) -> list[Report]:
    if bool(files) == (unreadable is not None):
        raise UsageError(
            "no-report",
            "no report is named",
            "Give either REPORT files, or --unreadable WHY where there is no readable report.",
        )
    if unreadable is not None:
        raise OutsideError("unreadable-report", unreadable, "See the log of the measuring job.")
    return [load_report(path) for path in files]


@dataclass(slots=True)
class _Poster:
    """Leaves the reports of a request on GitHub, and reports each outcome to ``say``.

    ``unwritten`` is the error of the job's summary page. It is raised in the end, so that it keeps
    nothing back from GitHub.
    """

    request: CommentRequest
    say: Say
    unwritten: OutsideError | None = None

    def target(self) -> PostTarget | MergeGroup | NothingToPost:
        """Return the commit to post to, or why there is nothing to post to."""
        request = self.request
        return actions.target(request.pull, request.head_sha, request.event)

    def post(self, reports: list[Report], *, strict: bool) -> list[Report]:
        """Leave the reports where they belong, and return them as they were judged in the end."""
        wanted = self.target()
        head_sha = "" if isinstance(wanted, NothingToPost) else wanted.head_sha
        # before the token is used, so that the text exists if it is refused
        body = self._write_body(reports, head_sha)
        if isinstance(wanted, NothingToPost):
            self.say(f"nothing posted: {wanted.reason}", err=True)
            return reports
        with closing(self._client()) as client:
            judged = self._post(client, wanted, reports, body, strict=strict)
        if self.unwritten is not None:
            raise self.unwritten
        return judged

    def _post(
        self,
        client: GitHubClient,
        wanted: PostTarget | MergeGroup,
        reports: list[Report],
        body: str,
        *,
        strict: bool,
    ) -> list[Report]:
        try:
            target = find_pull(client, wanted)
            if isinstance(target, (NothingToPost, AmbiguousPull)):
                self._say_nothing_posted(client, target)
                return reports
            require_measured(client, [report.head.sha for report in reports], target)
        except Refused as failure:
            self._say_refused(failure.message, body)
            return reports
        reports, links = self._with_caveats(client, target, reports)
        body = self._write_body(reports, target.head_sha, links)
        self._write_pages(reports)
        check = None
        if self.request.check:
            posting = self._posting_of(target)
            check = check_content(reports, body, actions.run_url(), posting, strict=strict)
        if isinstance(target, MergeGroup):
            self._post_group_check(client, target, check, body)
        else:
            self._post_comment_and_check(client, target, check, body)
        return reports

    def fail_check(self, why: str) -> None:
        """Fail the check of the commit that the event names, if any.

        It raises nothing, because the caller raises the error of the unreadable report.
        """
        try:
            wanted = self.target()
            if isinstance(wanted, NothingToPost) or not wanted.head_sha:
                return
            with closing(self._client()) as client:
                target = find_pull(client, wanted)
                outcome = (
                    PostOutcome("stale", target.reason)
                    if isinstance(target, NothingToPost)
                    else self._set_failed(client, target, why)
                )
        except PerfciError as another:
            outcome = PostOutcome("refused", clean_line(another.message, 600))
        self._say_outcome(outcome)

    def _client(self) -> GitHubClient:
        return actions.client(self.request.repository, self.request.most_wait_s)

    def _with_caveats(
        self, client: GitHubClient, target: Pull | MergeGroup, reports: Sequence[Report]
    ) -> tuple[list[Report], Links]:
        """Return the reports with a caveat on an unexpected base, and the links for a comment."""
        request = self.request
        known, held = {target.head_sha}, list(reports)
        if not request.any_base:
            caveats = [caveat_of_base(client, target, report) for report in reports]
            known |= {
                report.base.sha
                for report, caveat in zip(reports, caveats, strict=True)
                if report.base and report.command == "compare" and not caveat
            }
            held = list(map(with_caveat, reports, caveats))
        repository = actions.repository_url(request.repository)
        return held, known_links(repository, frozenset(known), request.details)

    def _write_body(self, reports: Sequence[Report], head_sha: str, links: Links = NO_LINKS) -> str:
        """Write the comment's text, and return it."""
        body = render_comment(reports, head_sha=head_sha, links=links)
        _write(self.request.body_file, body)
        return body

    def _write_pages(self, reports: Sequence[Report]) -> None:
        """Write the reports' pages, as they were judged: each after the first with its number."""
        page_file = self.request.page_file
        if page_file is None:
            return
        for number, report in enumerate(reports, 1):
            name = page_file.stem if number == 1 else f"{page_file.stem}-{number}"
            _write(page_file.with_name(name + page_file.suffix), render_page(report))

    def _posting_of(self, target: Pull | MergeGroup | AmbiguousPull) -> Posting:
        """Return the pull request that a check of ``target`` is for, and the run's attempt."""
        attempt = actions.attempt()
        if isinstance(target, Pull):
            return Posting(target.number, target.target, attempt)
        return Posting(attempt=attempt)

    def _set_failed(
        self, client: GitHubClient, target: Pull | MergeGroup | AmbiguousPull, why: str
    ) -> PostOutcome:
        content = unreadable_content(why, actions.run_url(), self._posting_of(target))
        return set_check(client, target.head_sha, content, dry_run=self.request.dry_run)

    def _say_nothing_posted(
        self, client: GitHubClient, target: NothingToPost | AmbiguousPull
    ) -> None:
        """Say why nothing is posted; fail the check of a commit that several pull requests have."""
        if isinstance(target, AmbiguousPull) and self.request.check:
            self._say_outcome(self._set_failed(client, target, target.reason))
        self.say(f"nothing posted: {target.reason}", err=True)

    def _post_comment_and_check(
        self, client: GitHubClient, pull: Pull, check: CheckContent | None, body: str
    ) -> None:
        """Leave the comment ``body`` on ``pull``, and the check if one is wanted."""
        try:
            left = leave_comment(
                client, pull, self.request.author, body, dry_run=self.request.dry_run
            )
        except OutsideError:
            self._summarise(body)
            try:
                if check is not None:  # the check gates: it is set before the error is raised
                    self._set_check_and_say(client, pull, check)
            except OutsideError as another:
                self.say(f"check not set: {clean_line(another.message, 600)}", err=True)
            raise
        if left.kind == "refused":
            self._say_refused(left.text, body)
        else:
            self._say_outcome(left)
        if check is not None and left.kind != "stale":
            self._set_check_and_say(client, pull, check)

    def _set_check_and_say(
        self, client: GitHubClient, target: Pull | MergeGroup, check: CheckContent
    ) -> PostOutcome:
        shown = with_other_checks(client, target, check)
        outcome = set_check(client, target.head_sha, shown, dry_run=self.request.dry_run)
        self._say_outcome(outcome)
        return outcome

    def _post_group_check(
        self, client: GitHubClient, group: MergeGroup, check: CheckContent | None, body: str
    ) -> None:
        """Set the check of a merge group, which has no pull request to comment on."""
        if check is None:
            self.say("nothing posted: a merge group can't be commented on", err=True)
            return
        try:
            left = self._set_check_and_say(client, group, check)
        except OutsideError:
            self._summarise(body)
            raise
        if left.kind == "refused":
            self._summarise(body)

    def _summarise(self, body: str) -> None:
        self.unwritten = actions.summarise(body, self.request.body_file, self.say)

    def _say_outcome(self, outcome: PostOutcome) -> None:
        """Report the outcome of a comment or a check."""
        self.say(_PREFIXES[outcome.kind] + outcome.text, err=outcome.kind != "posted")

    def _say_refused(self, why: str, body: str) -> None:
        """Report that the token may not comment, and leave the text on the summary page."""
        self.say(f"comment not posted, because the token may not: {why}", err=True)
        self._summarise(body)


def _write(file: Path, text: str) -> None:
    with writing(file, "Nothing was posted."):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text)
