"""``comment``: posts reports to their pull request, judged again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.compare import now
from perfci.commands.project import load_report
from perfci.errors import OutsideError, PerfciError, UsageError, joined_error
from perfci.files import write_file, writing
from perfci.forges import actions
from perfci.forges.actions import NothingToPost, PostTarget
from perfci.forges.github import Refused, client_of_step
from perfci.forges.posting import (
    check_content,
    find_head,
    leave_comment,
    require_measured,
    set_check,
    unreadable_content,
)
from perfci.measure.plan import files_in
from perfci.measure.selection import by_name, written_in
from perfci.outputs import Say
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
    from perfci.config.loading import Config
    from perfci.forges.github import GitHubClient
    from perfci.measure.selection import DecoratorLiterals
    from perfci.model.report import Report
    from perfci.verdict.policy import Policy


@dataclass(frozen=True, slots=True)
class CommentRequest:
    """The options of ``comment``.

    ``files`` are the reports, one per environment, or ``unreadable`` is the reason why there are
    none. ``pull`` and ``head_sha`` take precedence over the ``event``. ``author`` is the account
    that the token posts as. ``body_file`` gets the comment's text before anything is posted.

    ``page_file`` gets the page of the judged report, and ``details`` is the address where that page
    will be, which the comment links. The ``config`` of the checkout ``root`` judges.
    """

    root: Path
    config: Config
    files: tuple[Path, ...] = ()
    unreadable: str | None = None
    pull: int | None = None
    head_sha: str = ""
    event: Path | None = None
    repository: str | None = None
    author: str = "github-actions[bot]"
    body_file: Path = field(default_factory=lambda: Path("perfci-comment.md"))
    check: bool = True
    page_file: Path | None = None
    details: str = ""


def comment(request: CommentRequest, say: Say) -> list[Report]:
    """Leave the reports as one comment and one check, and report each outcome to ``say``.

    Return the reports as they were judged.

    OutsideError if GitHub or the disk failed, or a report can't be read.
    """
    if request.details and not ADDRESS.fullmatch(request.details):
        raise UsageError(
            "bad-address",
            f"--details is {request.details[:80]!r}, no plain web address",
            "Give https://HOST/PATH, as upload-artifact's output `artifact-url` is.",
        )
    try:
        loaded = _loaded(request)
    except OutsideError as error:
        if request.check:
            _fail_check(request, error.message, say)
        raise
    reports = _judged(request, loaded)
    # before the token is used, so that the text exists if it is refused
    _write_body(request, reports)
    try:
        wanted = actions.target(request.pull, request.head_sha, request.event)
        with closing(client_of_step(request.repository)) as client:
            _post(client, wanted, request, reports, say)
    except NothingToPost as nothing:
        say(f"nothing posted: {nothing}", err=True)
    return reports


def _loaded(request: CommentRequest) -> list[Report]:
    if bool(request.files) == (request.unreadable is not None):
        raise UsageError(
            "no-report",
            "no report is named",
            "Give either REPORT files, or --unreadable WHY if no report can be read.",
        )
    if request.unreadable is not None:
        advice = "See the log of the measuring job."
        raise OutsideError("unreadable", request.unreadable, advice)
    return [load_report(path) for path in request.files]


def _judged(request: CommentRequest, loaded: Sequence[Report]) -> list[Report]:
    """Return the reports judged by the configuration and the benchmark files of ``root``.

    The checkout is the one that perfci runs in here, never a report's: the measuring job must not
    decide. Acceptances count only for a head of the repository itself.
    """
    config = request.config
    files = files_in(request.root, config.benchmarks, config.pattern)
    by_file = written_in(request.root, files)  # read, not imported
    named = by_name(by_file)
    policy = _policy_with(config.policy, named)
    accepts = any(row.accepted for report in loaded for row in report.results)
    head_is_ours = accepts and _is_own(request)
    metrics = {name: benchmark.metrics for name, benchmark in named.items()}
    expected = {
        file: [name for name, benchmark in benchmarks.items() if not benchmark.conditional]
        for file, benchmarks in by_file.items()
    }
    reports = []
    for report in loaded:
        judged = believed(report, head_is_ours, config.accept, now()[:10], policy)
        judged = enforced(judged, policy, metrics)
        judged = with_unreported(judged, expected, policy)
        reports.append(with_caveat(judged, caveat_of_copies(judged, config.installed)))
    return reports


def _policy_with(policy: Policy, named: Mapping[str, DecoratorLiterals]) -> Policy:
    """Return the policy with the thresholds that the benchmarks' decorators have."""
    configured = policy.thresholds
    thresholds = {
        name: {**configured.get(name, {}), **(named[name].thresholds if name in named else {})}
        for name in {*configured, *named}
    }
    return replace(policy, thresholds=thresholds)


def _is_own(request: CommentRequest) -> bool:
    try:
        return actions.target(request.pull, request.head_sha, request.event).own
    except NothingToPost:
        return False


def _post(
    client: GitHubClient,
    wanted: PostTarget,
    request: CommentRequest,
    reports: list[Report],
    say: Say,
) -> None:
    """Leave the comment and the check. If one fails, the other is still left."""
    try:
        head = find_head(client, wanted)
        require_measured(client, [report.head.sha for report in reports], head)
    except Refused as failure:
        say(f"nothing posted, because the token lacks the right: {failure.message}", err=True)
        actions.summarise(_write_body(request, reports, wanted.head_sha))
        return
    bases = {report.base.sha for report in reports if report.base and report.command == "compare"}
    commits = frozenset({head.sha, *bases})
    links = known_links(actions.repository_url(request.repository), commits, request.details)
    body = _write_body(request, reports, head.sha, links)
    _write_pages(request, reports)
    steps: list[tuple[str, Callable[[], str]]] = []
    if head.number:
        steps.append(
            ("comment not posted", lambda: leave_comment(client, head, request.author, body))
        )
    if request.check:
        about = (head, actions.run_url(), actions.attempt())
        check = check_content(reports, body, *about, strict=request.config.policy.strict)
        steps.append(("check not set", lambda: set_check(client, head.sha, check)))
    failed: list[PerfciError] = []
    all_left = True
    for problem, leave in steps:
        try:
            say(leave())
        except Refused as failure:
            say(f"{problem}, because the token may not: {failure.message}", err=True)
            all_left = False
        except OutsideError as failure:
            failed.append(failure)
    if failed or not all_left:
        try:
            actions.summarise(body)
        except OutsideError as unwritten:
            failed.append(unwritten)
    if failed:
        raise joined_error(failed)


def _fail_check(request: CommentRequest, why: str, say: Say) -> None:
    """Fail the check of the commit that the request names, if any.

    It raises nothing, because the caller raises the error of the unreadable report.
    """
    try:
        wanted = actions.target(request.pull, request.head_sha, request.event)
        if not wanted.head_sha:
            return
        with closing(client_of_step(request.repository)) as client:
            head = find_head(client, wanted)
            check = unreadable_content(why, head, actions.run_url(), actions.attempt())
            say(set_check(client, head.sha, check))
    except NothingToPost as nothing:
        say(f"nothing posted: {nothing}", err=True)
    except PerfciError as another:
        say(f"check not set: {clean_line(another.message, 600)}", err=True)


def _write_body(
    request: CommentRequest, reports: Sequence[Report], head_sha: str = "", links: Links = NO_LINKS
) -> str:
    """Write the comment's text, and return it."""
    body = render_comment(reports, head_sha=head_sha, links=links)
    _write(request.body_file, body)
    return body


def _write_pages(request: CommentRequest, reports: Sequence[Report]) -> None:
    """Write the reports' pages, as they were judged: each after the first with its number."""
    if (page := request.page_file) is None:
        return
    for number, report in enumerate(reports, 1):
        name = page.stem if number == 1 else f"{page.stem}-{number}"
        _write(page.with_name(name + page.suffix), render_page(report))


def _write(file: Path, text: str) -> None:
    with writing(file, "Nothing was posted."):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text)
