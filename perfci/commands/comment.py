"""``comment``: reports judged by the configuration here, and left on their pull request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.accepting import today, with_authors
from perfci.commands.posting import (
    fail_the_answer,
    fail_the_check,
    post,
    post_answer,
    say_outcome,
    written_body,
)
from perfci.commands.project import configuration, load_report
from perfci.errors import OutsideError, UsageError
from perfci.forges.step import place_of
from perfci.measure.selection import Written, by_name, written_in
from perfci.report.links import ADDRESS

if TYPE_CHECKING:
    from perfci.config.loading import Config
    from perfci.forges.github.event import MergeGroup, Nothing, Wanted
    from perfci.model.report import Report
    from perfci.notices import Say
    from perfci.verdict.acceptance import Acceptance
    from perfci.verdict.policy import Policy


@dataclass(frozen=True, slots=True)
class RequestedAnswer:
    """The answer to a comment on ``pull``, of the commit that was measured for it."""

    comment: int
    pull: int
    head_sha: str


@dataclass(frozen=True, slots=True)
class CommentRequest:
    """The options of ``comment``.

    ``files`` are the reports, one per environment, or ``unreadable`` is the reason why there are
    none. ``forge`` is one of ``FORGES``, or the environment's without it. ``pull`` and ``head_sha``
    go before the ``event``. ``author`` is the account of the token, where the forge doesn't report
    it. ``body_file`` gets the comment's text before anything is posted. ``most_wait_s`` bounds all
    waits for the forge. ``any_base`` believes a comparison with any commit. ``page_file`` gets the
    report's page, as it was judged, and the comment links ``details``, the page's future address.
    The configuration of the checkout ``root`` judges. ``answer`` is the comment that asked for the
    measurement. The report is then left as its answer, sets no check, and may leave cases out.
    """

    root: Path
    files: tuple[Path, ...] = ()
    unreadable: str | None = None
    pull: int | None = None
    head_sha: str = ""
    event: Path | None = None
    repository: str | None = None
    author: str | None = None
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
    forge: str | None = None
    answer: int | None = None


@dataclass(frozen=True, slots=True)
class JudgedReports:
    """The reports as they were judged, and whether an inconclusive one fails the check."""

    reports: tuple[Report, ...]
    strict: bool


def comment(request: CommentRequest, say: Say) -> JudgedReports:
    """Leave the reports as one comment and one check, and report each outcome to ``say``.

    The measuring job is not believed: every row is judged again by the configuration of ``root``.
    OutsideError where the forge or the disk failed, or a report can't be read.
    """
    from perfci.forges.github.event import Nothing
    from perfci.verdict.acceptance import accepted_here, believed
    from perfci.verdict.enforcement import caveat_of_copies, with_caveat

    if request.details and not ADDRESS.fullmatch(request.details):
        raise UsageError(
            "bad-address",
            f"--details is {request.details[:80]!r}, no plain web address",
            "Give https://HOST/PATH, as upload-artifact's output `artifact-url` is.",
        )
    answer = _answer(request)
    # of the checkout that this runs in, never of the report: whoever measures must not decide it
    config = configuration(request.root, request.config_path, strict=request.strict)
    written = _written_here(request.root, config)
    policy = _with_own_thresholds(config.policy, by_name(written))
    place = place_of(request.forge)
    find_wanted = partial(place.wanted, request.pull, request.head_sha, request.event)
    connect = partial(place.client, request.repository, request.most_wait_s)
    try:
        loaded = _loaded(request.files, request.unreadable)
        own = any(row.accepted for report in loaded for row in report.results) and _is_own(
            find_wanted
        )
        lines = with_authors(config.accept, request.root)
        loaded = [believed(report, own, lines, today(), policy) for report in loaded]

        def judged(accepted: Sequence[Acceptance] = ()) -> list[Report]:
            held = [
                accepted_here(report, accepted, policy, partial(_judged, policy, written, answer))
                for report in loaded
            ]
            held = [
                with_caveat(report, caveat_of_copies(report, config.installed)) for report in held
            ]
            if request.history:
                held = _with_past(held, request.history, request.root, config, say)
            return held

        reports = judged()
    except OutsideError as error:
        if answer is not None:
            fail_the_answer(error.message, request, place, answer, connect, say)
        elif request.check:
            failed = fail_the_check(
                error.message, place, find_wanted, connect, dry_run=request.dry_run
            )
            if failed is not None:
                say_outcome(failed, say)
        raise
    if answer is not None:
        written_body(request.body_file, reports, answer.head_sha)  # first: a token may be unusable
        with closing(connect()) as client:
            reports = post_answer(request, place, client, answer, reports, say)
        return JudgedReports(tuple(reports), policy.strict)
    wanted = find_wanted()
    head_sha = "" if isinstance(wanted, Nothing) else wanted.head_sha
    body = written_body(request.body_file, reports, head_sha)  # first: a token may be unusable
    if isinstance(wanted, Nothing):
        say(f"nothing posted: {wanted.text}", err=True)
    else:
        with closing(connect()) as client:
            reports = post(
                request, place, client, wanted, reports, body, say, judged, strict=policy.strict
            )
    return JudgedReports(tuple(reports), policy.strict)


def _answer(request: CommentRequest) -> RequestedAnswer | None:
    from perfci.forges.github.event import full_sha

    if request.answer is None:
        return None
    if request.pull is None or not request.head_sha:
        raise UsageError(
            "no-pull",
            "--answer is given without --pull or --head-sha",
            "Name the pull request and the commit, as `perfci on-demand` set its outputs.",
        )
    return RequestedAnswer(request.answer, request.pull, full_sha(request.head_sha, "--head-sha"))


def _written_here(root: Path, config: Config) -> Mapping[str, Mapping[str, Written]]:
    """Return the benchmarks that each file here writes. The files are read, not imported."""
    from perfci.measure.plan import files_in

    return written_in(root, files_in(root, config.benchmarks, config.pattern))


def _with_own_thresholds(policy: Policy, written: Mapping[str, Written]) -> Policy:
    """Return ``policy`` with the thresholds that stand at the benchmarks, which go before it."""
    own = {
        name: benchmark.thresholds for name, benchmark in written.items() if benchmark.thresholds
    }
    configured = policy.thresholds
    both = {name: {**configured.get(name, {}), **own.get(name, {})} for name in {*configured, *own}}
    return replace(policy, thresholds=both)


def _is_own(find_wanted: Callable[[], Wanted | MergeGroup | Nothing]) -> bool:
    """Return whether the event is of a commit made by an account that may write to the repository.

    A merge group is one, because only such an account puts a fork's change into a queue.
    """
    from perfci.forges.github.event import MergeGroup, Wanted

    wanted = find_wanted()
    return isinstance(wanted, MergeGroup) or (isinstance(wanted, Wanted) and wanted.own)


def _loaded(files: Sequence[Path], unreadable: str | None) -> list[Report]:
    if bool(files) == (unreadable is not None):
        raise UsageError(
            "no-report",
            "it is not said which report to post",
            "Give REPORT files, or --unreadable WHY where what was left can't be read; not both.",
        )
    if unreadable is not None:
        raise OutsideError("unreadable-report", unreadable, "See the log of what left it.")
    return [load_report(path) for path in files]


def _judged(
    policy: Policy,
    written: Mapping[str, Mapping[str, Written]],
    answer: RequestedAnswer | None,
    report: Report,
) -> Report:
    from perfci.verdict.enforcement import enforced, with_unreported

    reported = {name: benchmark.metrics for name, benchmark in by_name(written).items()}
    everywhere = {
        file: [name for name, benchmark in benchmarks.items() if not benchmark.conditional]
        for file, benchmarks in written.items()
    }
    if answer is not None:  # of the cases that were asked for
        return enforced(report, policy, reported)
    return with_unreported(enforced(report, policy, reported), everywhere, policy)


def _with_past(
    reports: Sequence[Report], history: str, folder: Path, config: Config, say: Say
) -> list[Report]:
    from perfci.commands.project import repository_at
    from perfci.commands.revisions import with_past

    checkout = repository_at(folder)
    return [with_past(report, history, checkout, config.aliases, say) for report in reports]
