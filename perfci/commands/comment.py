"""``comment``: posts reports to their pull request, judged again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.compare import with_own_thresholds
from perfci.commands.history import with_past
from perfci.commands.project import configuration, load_report, repository_at
from perfci.commands.report_delivery import Poster
from perfci.commands.run_to_report import today, with_authors
from perfci.errors import OutsideError, UsageError
from perfci.forges.base import MergeGroup, PostTarget
from perfci.measure.plan import files_in
from perfci.measure.selection import by_name, written_in
from perfci.report.links import ADDRESS
from perfci.verdict.acceptance import (
    believed,
    caveat_of_copies,
    enforced,
    with_caveat,
    with_unreported,
)

if TYPE_CHECKING:
    from perfci.model.report import Report
    from perfci.outputs import Say


@dataclass(frozen=True, slots=True)
class CommentRequest:
    """The options of ``comment``.

    ``files`` are the reports, one per environment, or ``unreadable`` is the reason why there are
    none. ``pull`` and
    ``head_sha`` take precedence over the ``event``. ``author`` is the account that the token posts
    as. ``body_file`` gets the comment's text before anything is posted. ``most_wait_s`` bounds all
    waits for GitHub. ``any_base`` accepts a comparison with any
    commit as base.

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
    poster = Poster(request, say)
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

    def _believed(self, reports: Sequence[Report], poster: Poster) -> list[Report]:
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

    def judged(self, loaded: Sequence[Report], poster: Poster) -> list[Report]:
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
