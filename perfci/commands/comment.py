"""``comment`` posts reports to a pull request, ``on-demand`` reads its comments' requests."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.compare import with_own_thresholds
from perfci.commands.history import with_past
from perfci.commands.project import configuration, load_report, repository_at
from perfci.commands.report_delivery import Poster
from perfci.commands.run_to_report import today, with_authors
from perfci.errors import OutsideError, UsageError
from perfci.files import require_file
from perfci.forges import actions
from perfci.forges.base import SHA, MergeGroup, NothingToPost, PostTarget, full_sha
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
from perfci.measure.plan import files_in
from perfci.measure.selection import by_name, select, written_in
from perfci.outputs import writing
from perfci.report.clean import clean_line
from perfci.report.links import ADDRESS
from perfci.verdict.acceptance import (
    accepted_here,
    believed,
    caveat_of_copies,
    enforced,
    with_caveat,
    with_unreported,
)

if TYPE_CHECKING:
    from perfci.forges.base import Comment
    from perfci.forges.github import GitHubClient
    from perfci.model.report import Report
    from perfci.outputs import Say
    from perfci.verdict.acceptance import Acceptance


@dataclass(frozen=True, slots=True)
class RequestedAnswer:
    """An answer to the comment ``comment`` on ``pull``, with the numbers of ``head_sha``."""

    comment: int
    pull: int
    head_sha: str


@dataclass(frozen=True, slots=True)
class CommentRequest:
    """The options of ``comment``.

    ``files`` are the reports, one per environment, or ``unreadable`` is the reason why there are
    none. ``pull`` and
    ``head_sha`` take precedence over the ``event``. ``author`` is the account of the token, for a
    forge that doesn't report it. ``body_file`` gets the comment's text before anything is posted.
    ``most_wait_s`` bounds all waits for the forge. ``any_base`` accepts a comparison with any
    commit as base.

    ``page_file`` gets the page of the judged report, and ``details`` is the address where that page
    will be, which the comment links. The configuration of the checkout ``root`` judges. ``answer``
    is the id of the comment that asked for the measurement. The report is then left as its answer,
    sets no check, and may lack cases.
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
    answer: int | None = None


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
    answer = _answer(request)
    judge = _Judge(request, answer, say)
    poster = Poster(request, say)
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
    return reports, judge.policy.strict


class _Judge:
    """Judges reports by the configuration and the benchmark files of a checkout.

    The checkout is the one that perfci runs in here, never a report's: the measuring job must not
    decide.
    """

    def __init__(self, request: CommentRequest, answer: RequestedAnswer | None, say: Say) -> None:
        self._request = request
        self._answer = answer
        self._say = say
        self._config = configuration(request.root, request.config_path, strict=request.strict)
        files = files_in(request.root, self._config.benchmarks, self._config.pattern)
        self._written = written_in(request.root, files)  # read, not imported
        self.policy = with_own_thresholds(self._config.policy, by_name(self._written))

    def believed(self, reports: Sequence[Report], poster: Poster) -> list[Report]:
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


def on_demand(
    event: Path | None, repository: str | None, author: str | None, most_wait_s: float, say: Say
) -> OnDemandRun | None:
    """Return the measurement that the event's comment asks for, after answering the comment.

    None if the comment asks for nothing, or its author may not ask: then it gets no answer. The
    measurement becomes the step's outputs. Without one they stay empty. ``author`` is the account
    of the token.
    """
    if event is None:
        raise UsageError(
            "no-event",
            "no comment is named",
            "Run it in a workflow `on: issue_comment`, which sets GITHUB_EVENT_PATH.",
        )
    advice = "Name the event's file: --event."
    asking = read_asking(actions.read_input(event, advice), str(event))
    if isinstance(asking, NothingToPost):
        say(f"nothing is measured: {asking.reason}", err=True)
        return None
    selections = _selections(asking.body)
    if not selections:
        say("nothing is measured: the comment doesn't ask for it", err=True)
        return None
    with closing(actions.client(repository, most_wait_s)) as client:
        measuring = _acknowledged(client, asking, selections, say)
        if measuring is None:
            return None
        body = measuring_body(measuring, actions.run_url())
        author = author or client.login()
        left = leave_answer(client, measuring.number, measuring.comment, author, body)
        if left.kind == "refused":  # the measurement doesn't depend on it
            say(f"no answer, because the token may not: {left.text}", err=True)
        else:
            say(left.text)
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
    """React to the comment, and return the measurement that it gets, or None."""
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
    """Return the measurement that is made, or the reason why nothing is measured."""
    pull = client.pull(asking.pull)
    why = measure_refusal(asking, pull, permission)
    if why:
        return why
    if len(selections) > 1:
        return "it has several selections; join them by `or`"
    try:
        select((), selections[0])  # raises if the expression can't be read
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


def set_outputs(values: Mapping[str, str]) -> None:
    """Set the step's outputs. Does nothing outside of Actions.

    The delimiter can't be guessed. So no value can end early and set another output.
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
