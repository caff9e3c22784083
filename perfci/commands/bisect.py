"""``bisect``: compares the ends of a range, and measures commits until the answer is known.

The state of a search is kept in a file, so that the same command continues it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from perfci.bisect import Bisection, Ended, NamedCommit
from perfci.bisect.answers import (
    answer_of,
    ends_threshold,
    gated,
    is_ratio,
    moved_most,
    no_answer_reason,
    ran_out,
)
from perfci.bisect.posterior import SessionAnswer
from perfci.bisect.search import Question, Search, SearchState, SoughtMetric, next_question
from perfci.commands.compare import MeasureOptions, compare
from perfci.commands.project import Project
from perfci.errors import (
    DamagedFile,
    MeasureError,
    NoTimeToImport,
    OutsideError,
    PerfciError,
    UnmeasurableCommit,
    UsageError,
)
from perfci.files import read_regular, write_file
from perfci.measure.checkout.commits import commit_of, commits, parents_of
from perfci.measure.checkout.disk import explaining, take_if_free
from perfci.measure.checkout.git import Repository
from perfci.measure.process_cleanup import measuring_begins
from perfci.model.codec import CodecError, decode, encode
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.units import counted, format_change, format_value
from perfci.verdict.policy import Policy

if TYPE_CHECKING:
    from perfci.model.report import Report

_LONGEST_REASON = 300
"""Characters that are kept of the reason why a commit was skipped."""


@dataclass(frozen=True, slots=True)
class BisectOptions:
    """The options of a search, besides its range.

    ``selection`` and ``metric`` narrow down what is searched for. If several cases or metrics
    remain, the search is for what moved most. ``size`` is the share by which ``metric`` is known to
    have moved. ``restart`` forgets what an earlier start of the same search measured.
    """

    selection: str = ""
    metric: str = ""
    size: float | None = None
    budget_s: float = 3600.0
    restart: bool = False


def bisect(project: Project, wanted: str, options: BisectOptions) -> Bisection:
    """Search the range ``wanted``, ``GOOD..BAD``, continuing where an earlier start ended.

    MeasureError if nothing moved.
    """
    if ".." not in wanted:
        raise UsageError(
            "bad-range",
            f"{wanted!r} is not a range of commits",
            "Write GOOD..BAD with both ends, as v1.2..main.",
        )
    started = project.caller.executor.now()
    state = _commits_of(project.repository, wanted)
    path = _state_path(project, state, options)
    with explaining(f"making {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = take_if_free(path.with_suffix(".lock"))
        if lock is not None and options.restart:
            path.unlink(missing_ok=True)
    if lock is None:
        raise OutsideError(
            "search-running",
            "another perfci searches the same range for the same change",
            "Wait until it has ended.",
        )
    try:
        state = _read_state(path) or state
        return _Driver(project, options, state, path, started).run()
    finally:
        lock.release(remove=True)


def _commits_of(repository: Repository, wanted: str) -> SearchState:
    """Return a search of the first-parent commits of ``OLD..NEW``, before its first answer."""
    newest_first = commits(repository, wanted)
    before = parents_of(repository, newest_first[-1].sha)
    if not before:
        raise UsageError(
            "unrelated-commits",
            f"no commit of {wanted} was made on its older end",
            "Choose an older end that the newer one was made from.",
        )
    good = commit_of(repository, before[0])
    named = tuple(NamedCommit(commit.sha, commit.subject) for commit in reversed(newest_first))
    return SearchState(NamedCommit(good.sha, good.subject), named, Search(len(named)))


def _state_path(project: Project, state: SearchState, options: BisectOptions) -> Path:
    """Return the file that keeps the state of a search."""
    bad = state.commits[-1].sha
    # the configuration, too: another one builds, skips and measures differently
    goal = (options.selection, options.metric, repr(project.config))
    parts = (state.good.sha, bad, project.side("head", bad).python, *goal)
    name = hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]
    return project.session_context().cache / project.repository.id / "bisect" / f"{name}.json"


def _read_state(path: Path) -> SearchState | None:
    """Return the state of an earlier start, or None. DamagedFile if it can't be read."""
    try:
        return decode(read_regular(path), SearchState)
    except FileNotFoundError:
        return None
    except (CodecError, OSError) as error:
        raise DamagedFile(
            "damaged-file",
            f"the earlier search in {path} can't be read: {error}",
            "Start again with --restart.",
        ) from error


class _SearchEnded(Exception):
    """The search ends here. The same command continues it."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended)
        self.ended: Ended = ended


@dataclass(slots=True)
class _Driver:
    """A search in progress, whose state is written to ``path`` after each step.

    ``started`` is a time of the caller's clock.
    """

    project: Project
    options: BisectOptions
    state: SearchState
    path: Path
    started: float

    def run(self) -> Bisection:
        """Compare the ends, and measure commits until no question is left.

        A signal ends the search with what is known. If nothing is known yet, raises
        KeyboardInterrupt.
        """
        ended: Ended = "done"
        try:
            sought = self.state.sought or self._compare_ends()
            while question := next_question(self.state.search):
                self._ask(sought, question)
        except _SearchEnded as enough:
            ended = enough.ended
        except KeyboardInterrupt:
            if self.state.sought is None:
                raise
            ended = "interrupted"
        if self.state.sought is None:
            raise MeasureError(
                "budget-too-short",
                "the time ended before both ends were compared",
                "Raise --budget, or choose fewer cases with -k.",
            )
        return self.state.result(self.state.sought, ended)

    def _compare_ends(self) -> SoughtMetric:
        """Compare both ends, and choose the selected case and metric that moved most."""
        question = Question(len(self.state.commits), 0.0)
        policy = replace(self.project.config.policy, two_sided=True)
        metric = self.options.metric
        if metric:
            policy = gated(policy, metric, ends_threshold(policy, metric, self.options.size))
        report = self._report(question, (), policy)
        row = moved_most(report, metric, policy.alpha)
        answer = answer_of(row, question, log=is_ratio(row)) if row else None
        if row is None or answer is None:
            if report.interrupted:
                raise MeasureError(
                    "nothing-compared", "the search was interrupted before the ends were compared"
                )
            if any(ran_out(report, row.case) for row in report.results):
                raise _SearchEnded("budget")
            raise _nothing_moved(report, metric)
        sought = SoughtMetric(
            row.case,
            row.metric,
            row.unit,
            row.direction,
            "log" if is_ratio(row) else "difference",
            _environment_of_good(report),
        )
        self.state.sought = sought
        self._add(sought, answer, report)
        return sought

    def _ask(self, sought: SoughtMetric, question: Question) -> None:
        """Measure one commit, and keep the answer or the reason why it has no answer."""
        log = sought.scale == "log"
        threshold = math.expm1(question.margin) if log else question.margin
        policy = gated(self.project.config.policy, sought.metric, threshold)
        try:
            report = self._report(question, (sought.case,), policy)
        except UnmeasurableCommit as error:
            self._skip(question, error.message)
            return
        if question.base == 0:  # the good end
            _require_same_environment(report, sought)
        rows = (row for row in report.results if row.metric == sought.metric)
        row = next((row for row in rows if row.case == sought.case), None)
        answer = answer_of(row, question, log=log) if row else None
        if row and row.status == "untouched":  # it ran none of the files that differ
            rounds = report.timing.rounds
            answer = SessionAnswer(question.position, 0.0, 0.0, 1.0, rounds, question.base)
        if answer is not None:
            self._add(sought, answer, report)
        elif report.interrupted:
            raise _SearchEnded("interrupted")
        elif ran_out(report, sought.case):
            raise _SearchEnded("budget")
        else:
            self._skip(question, no_answer_reason(report, row))

    def _report(self, question: Question, only: tuple[str, ...], policy: Policy) -> Report:
        """Compare a question's two commits in the time that is left.

        All commits run the newest commit's benchmark files.
        """
        measuring_begins()  # building a side may take minutes, without a report to lose
        project, state = self.project, self.state
        left_s = self.options.budget_s - (project.caller.executor.now() - self.started)
        if left_s <= 0.0:
            raise _SearchEnded("budget")
        context = project.session_context()
        settings = context.config.settings
        rounds = max(settings.rounds, DECIDING_ROUNDS)  # fewer give no interval
        most = max(settings.max_rounds, rounds)
        settings = replace(settings, rounds=rounds, max_rounds=most, budget=left_s, inject={})
        config = structs.replace(context.config, policy=policy, settings=settings)
        options = MeasureOptions(
            self.options.selection,
            only=only,
            command="bisect",
            benchmarks_of=project.repository.resolve(state.commits[-1].sha),
        )
        base, head = (
            project.side(name, state.at(position).sha)
            for name, position in (("base", question.base), ("head", question.position))
        )
        try:
            _, report = compare(replace(context, config=config), base, head, options)
        except NoTimeToImport as error:
            raise _SearchEnded("budget") from error
        return report

    def _skip(self, question: Question, why: str) -> None:
        self.state.skip(question.position, why[:_LONGEST_REASON])
        self._keep()
        self._say(f"{self.state.at(question.position).short}  skipped: {why}")

    def _keep(self) -> None:
        with explaining(f"writing {self.path}"):
            write_file(self.path, encode(self.state))

    def _add(self, sought: SoughtMetric, answer: SessionAnswer, report: Report) -> None:
        """Keep and show an answer. An interrupted session ends the search after its answer."""
        self.state.add(answer)
        self._keep()
        size = (
            format_change(math.exp(answer.change))
            if sought.scale == "log"
            else f"{'+' if answer.change > 0 else ''}{format_value(answer.change, sought.unit)}"
        )
        commit, base = self.state.at(answer.position), self.state.at(answer.base)
        rounds = counted(answer.rounds, "round")
        self._say(f"{commit.short}  {size} against {base.short}, {rounds}  {commit.subject}")
        if report.interrupted:
            raise _SearchEnded("interrupted")

    def _say(self, text: str) -> None:
        self.project.caller.say(text, err=True)


def _environment_of_good(report: Report) -> str:
    """Return base's environment. Head's differs if a side's own build installs other versions."""
    return (report.base_environment or report.environment).key


def _require_same_environment(report: Report, sought: SoughtMetric) -> None:
    if (environment := _environment_of_good(report)) != sought.environment:
        raise MeasureError(
            "nothing-compared",
            "the search so far was measured in another environment "
            f"({sought.environment}, now {environment})",
            "Start again with --restart.",
        )


def _nothing_moved(report: Report, metric: str) -> PerfciError:
    if metric and not any(row.metric == metric for row in report.results):
        known = sorted({row.metric for row in report.results})
        return UsageError(
            "unknown-metric",
            f"no case that was compared has the metric {metric!r}",
            f"It has {', '.join(known)}." if known else "See `perfci compare` of the two ends.",
        )
    for failure in report.failures:
        return MeasureError(
            "nothing-compared",
            f"the ends can't be compared: {failure.case}, {failure.side}: {failure.message}",
            "Choose ends that can be measured. `perfci compare` of the two shows more.",
        )
    return MeasureError(
        "nothing-moved",
        f"between the ends, {metric or 'every metric'} differs by no more than chance",
        "Choose the case with -k and the metric with --metric, or an older good commit.",
    )
