"""``comment``: reports judged by the configuration here, and left on their pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.accepting import today, with_authors
from perfci.commands.compare import with_own_thresholds
from perfci.commands.posting import Poster
from perfci.commands.project import configuration, load_report
from perfci.errors import OutsideError, UsageError
from perfci.forges import step_of
from perfci.forges.base import MergeGroup, PostTarget, full_sha
from perfci.measure.selection import by_name, written_in
from perfci.report.links import ADDRESS
from perfci.verdict.acceptance import accepted_here, believed
from perfci.verdict.enforcement import caveat_of_copies, enforced, with_caveat, with_unreported

if TYPE_CHECKING:
    from perfci.forges.base import NothingToPost
    from perfci.model.report import Report
    from perfci.outputs import Say
    from perfci.verdict.acceptance import Acceptance


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
    if request.details and not ADDRESS.fullmatch(request.details):
        raise UsageError(
            "bad-address",
            f"--details is {request.details[:80]!r}, no plain web address",
            "Give https://HOST/PATH, as upload-artifact's output `artifact-url` is.",
        )
    answer = _answer(request)
    judge = _Judge(request, answer, say)
    poster = Poster(request, step_of(request.forge), say)
    try:
        loaded = judge.believed(_loaded(request.files, request.unreadable), poster)
        reports = judge.judged(loaded)
    except OutsideError as error:
        if answer is not None:
            poster.fail_answer(answer, error.message)
        elif request.check:
            poster.fail_check(error.message)
        raise
    if answer is not None:
        reports = poster.post_answer(answer, reports)
    else:
        reports = poster.post(reports, partial(judge.judged, loaded), strict=judge.policy.strict)
    return JudgedReports(tuple(reports), judge.policy.strict)


class _Judge:
    """Judges reports by the configuration and the benchmark files of a checkout.

    It is the checkout that this runs in, never that of a report: the measuring job must not decide.
    """

    def __init__(self, request: CommentRequest, answer: RequestedAnswer | None, say: Say) -> None:
        from perfci.measure.plan import files_in

        self._request = request
        self._answer = answer
        self._say = say
        self._config = configuration(request.root, request.config_path, strict=request.strict)
        files = files_in(request.root, self._config.benchmarks, self._config.pattern)
        self._written = written_in(request.root, files)  # read, not imported
        self.policy = with_own_thresholds(self._config.policy, by_name(self._written))

    def believed(self, reports: Sequence[Report], poster: Poster) -> list[Report]:
        """Return the reports without acceptances that are not the repository's own."""

        own = any(row.accepted for report in reports for row in report.results)
        own = own and _is_own(poster.wanted())
        lines = with_authors(self._config.accept, self._request.root)
        return [believed(report, own, lines, today(), self.policy) for report in reports]

    def judged(self, loaded: Sequence[Report], accepted: Sequence[Acceptance] = ()) -> list[Report]:
        """Return the reports judged again, with ``accepted`` and with their past."""

        reports = []
        for report in loaded:
            enforced = accepted_here(report, accepted, self.policy, self._enforced)
            copies = caveat_of_copies(enforced, self._config.installed)
            reports.append(with_caveat(enforced, copies))
        history = self._request.history
        if not history:
            return reports
        from perfci.commands.project import repository_at
        from perfci.commands.revisions import with_past

        checkout = repository_at(self._request.root)
        aliases = self._config.aliases
        return [with_past(report, history, checkout, aliases, self._say) for report in reports]

    def _enforced(self, report: Report) -> Report:

        reported = {name: benchmark.metrics for name, benchmark in by_name(self._written).items()}
        held = enforced(report, self.policy, reported)
        if self._answer is not None:  # only the requested cases are in the report
            return held
        everywhere = {
            file: [name for name, benchmark in benchmarks.items() if not benchmark.conditional]
            for file, benchmarks in self._written.items()
        }
        return with_unreported(held, everywhere, self.policy)


def _answer(request: CommentRequest) -> RequestedAnswer | None:

    if request.answer is None:
        return None
    if request.pull is None or not request.head_sha:
        raise UsageError(
            "no-pull",
            "--answer is given without --pull or --head-sha",
            "Name the pull request and the commit, as `perfci on-demand` set its outputs.",
        )
    return RequestedAnswer(request.answer, request.pull, full_sha(request.head_sha, "--head-sha"))


def _is_own(wanted: PostTarget | MergeGroup | NothingToPost) -> bool:
    """Return whether the event is of a commit made by an account that may write to the repository.

    A merge group is one, because only such an account puts a fork's change into a queue.
    """

    return isinstance(wanted, MergeGroup) or (isinstance(wanted, PostTarget) and wanted.own)


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
