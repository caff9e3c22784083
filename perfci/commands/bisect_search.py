"""One search: compares the ends, asks for commits, follows merges, and keeps its state."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from perfci.bisect import Bisection, Culprit, Ended, NamedCommit, moved_row
from perfci.bisect.posterior import SessionAnswer
from perfci.bisect.search import Question
from perfci.commands.bisect_answers import (
    SearchedRange,
    SearchState,
    SoughtMetric,
    StateFile,
    answer_of,
    changes_of,
    ends_threshold,
    gated,
    is_ratio,
    moved_most,
    next_confirmation,
    next_of,
    no_answer_reason,
    ran_out,
    result_of,
    state_file,
    threshold_of,
    with_explanations,
)
from perfci.commands.compare import MeasureOptions, compare, selected_cases
from perfci.commands.project import Project
from perfci.errors import (
    BudgetTooShort,
    MeasureError,
    NoTimeToImport,
    PerfciError,
    ReleaseNotInstalled,
    UnmeasurableCommit,
    UsageError,
)
from perfci.measure.ending import measuring_begins
from perfci.measure.explaining import explain_case
from perfci.measure.progress import case_states
from perfci.measure.workplace import open_workplace
from perfci.model.finding import Why
from perfci.model.worker import DECIDING_ROUNDS
from perfci.units import counted, format_change, format_value
from perfci.verdict.policy import Policy

if TYPE_CHECKING:
    from perfci.commands.bisect import SearchRange
    from perfci.model.report import Report

_LONGEST = 300
_WHY_SHARE = 0.05
"""Share of the budget for looking inside, or ``WHY_S`` where that is less."""
WHY_S = 30.0
"""Longest time for looking inside of a culprit, besides the case's own run time."""


@dataclass(frozen=True, slots=True)
class BisectOptions:
    """The options of a search, besides what it runs over.

    ``selection`` and ``metric`` narrow down what is searched for in a range. What moved most is
    chosen where several cases or metrics are meant. A change of the trend sets ``case``, by its
    id, and ``expected``, the ratio of bad to good that the trend saw. ``restart`` forgets what an
    earlier start of the same search measured. ``quiet`` reports no answer on the way. With
    ``package`` the range is of releases of that package. ``history`` is where a change is.
    """

    selection: str = ""
    metric: str = ""
    python: str | None = None
    budget_s: float = 3600.0
    restart: bool = False
    quiet: bool = False
    history: str | None = None
    package: str = ""
    case: str = ""
    expected: float | None = None


def search(project: Project, search_range: SearchRange, options: BisectOptions) -> Bisection:
    """Search, continuing where an earlier start ended. MeasureError where nothing moved."""
    started = project.caller.executor.now()
    with state_file(_folder(project), *_identity(project, search_range, options)) as file:
        if options.restart:
            file.forget()
        state = file.read() or SearchState((search_range.whole,))
        return _Search(project, search_range, options, file, state, started).run()


def is_begun(project: Project, search_range: SearchRange, options: BisectOptions) -> bool:
    """Return whether an earlier start kept a state of this search."""
    with state_file(_folder(project), *_identity(project, search_range, options)) as file:
        return file.read() is not None


def _folder(project: Project) -> Path:
    return project.session_context().cache / project.repository.id / "bisect"


def _identity(
    project: Project, search_range: SearchRange, options: BisectOptions
) -> tuple[str, ...]:
    # another configuration builds, skips and measures differently
    configuration = repr(project.config)
    return *search_range.identity, options.selection, options.case, options.metric, configuration


class _SearchEnded(Exception):
    """The search ends here, and the same command continues it."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended)
        self.ended: Ended = ended


class _Search:
    """A search in progress. Its state is written after each step."""

    def __init__(
        self,
        project: Project,
        search_range: SearchRange,
        options: BisectOptions,
        file: StateFile,
        state: SearchState,
        started: float,
    ) -> None:
        self._project = project
        self._range = search_range
        self._options = options
        self._file = file
        self._state = state
        self._started = started
        self._longest_s = 0.0
        self._why_s = min(WHY_S, _WHY_SHARE * options.budget_s)

    def run(self) -> Bisection:
        """Search the range, then the branches of merges that turn out to be culprits.

        A signal ends it with what is known. KeyboardInterrupt where nothing is known yet.
        """
        ended: Ended = "done"
        for step in (self._search_ranges, self._confirm, self._explain):
            try:
                step()
            except _SearchEnded as enough:
                ended = enough.ended
            except KeyboardInterrupt:
                if self._state.sought is None:
                    raise
                ended = "interrupted"
            if ended == "interrupted" or self._state.sought is None:
                break
        return self._result(ended)

    def _search_ranges(self) -> None:
        """Compare the ends, narrow down what moved, and go on into merges' branches."""
        if self._state.sought is None:
            self._compare_ends()
        number = 0
        while number < len(self._state.ranges):
            self._narrow_down(number)
            self._follow_merges(number)
            number += 1

    def _confirm(self) -> None:
        """Compare changes with the commit before them where a search ended without doing so."""
        for number in range(len(self._state.ranges)):
            while question := next_confirmation(self._state, self._state.ranges[number]):
                self._ask(number, question, self._why_s)

    def _compare_ends(self) -> None:
        """Compare both ends, and choose what moved most of the selected cases and metrics."""
        whole = self._state.ranges[0]
        question = Question(len(whole.commits), 0.0)
        request = self._request((self._options.case,) if self._options.case else ())
        policy = self._project.config.policy
        metric = self._options.metric
        if metric:
            policy = gated(policy, metric, ends_threshold(policy, metric, self._options.expected))
        report = self._report(whole, question, request, policy, 0.0)
        row = moved_most(report, metric, policy.alpha)
        if row is None:
            if report.interrupted:
                raise MeasureError(
                    "nothing-compared", "the search was interrupted before the ends were compared"
                )
            if any(ran_out(report, row.case) for row in report.results):
                raise _SearchEnded("budget")
            raise _nothing_moved(report, whole, metric)
        sought = SoughtMetric(
            row.case,
            row.metric,
            row.unit,
            row.direction,
            "log" if is_ratio(row) else "difference",
            _environment_of_good(report),
        )
        answer = answer_of(row, question, sought)
        if answer is None:
            raise _nothing_moved(report, whole, metric)
        self._keep(0, replace(whole, search=replace(whole.search, answers=(answer,))), sought)
        self._notify(0, question, answer)
        if report.interrupted:
            raise _SearchEnded("interrupted")

    def _narrow_down(self, number: int) -> None:
        """Ask until nothing is left to ask in one range."""
        while question := next_of(self._state, self._state.ranges[number]):
            confirmation = next_confirmation(self._state, self._state.ranges[number])
            others = confirmation is not None and confirmation != question
            self._ask(number, question, self._why_s + (self._longest_s if others else 0.0))

    def _follow_merges(self, number: int) -> None:
        """Add the branches that the culprits of a range merged."""
        searched = self._state.ranges[number]
        for change in changes_of(self._state, searched):
            sha = searched.at(change.last).sha
            known = any(branch.merged_by == sha for branch in self._state.ranges)
            if change.first == change.last and change.found and not known:
                branches = self._range.branches(sha)
                self._state = replace(self._state, ranges=(*self._state.ranges, *branches))
        self._file.write(self._state)

    def _request(self, only: tuple[str, ...]) -> MeasureOptions:
        return MeasureOptions(
            self._options.selection,
            only=only,
            command="bisect",
            benchmarks_of=self._range.benchmarks_of,
            everything=bool(self._range.package),  # the trees of releases have the same files
        )

    def _ask(self, number: int, question: Question, reserve_s: float) -> None:
        """Measure one commit, and keep the answer or the reason why it has no answer.

        ``reserve_s`` of the budget is left for later steps.
        """
        searched, sought = self._state.ranges[number], self._sought
        policy = gated(self._project.config.policy, sought.metric, threshold_of(question, sought))
        try:
            request = self._request((sought.case,))
            report = self._report(searched, question, request, policy, reserve_s)
        except (UnmeasurableCommit, ReleaseNotInstalled) as error:
            self._skip(number, question.position, error.message)
            return
        if question.base == 0:
            self._require_same_environment(report)
        rows = (row for row in report.results if row.metric == sought.metric)
        row = next((row for row in rows if row.case == sought.case), None)
        answer = answer_of(row, question, sought) if row else None
        if sought.case in report.same_code:
            answer = SessionAnswer(
                question.position, 0.0, 0.0, 1.0, report.timing.rounds, question.base
            )
        if answer is None:
            if report.interrupted:
                raise _SearchEnded("interrupted")
            if ran_out(report, sought.case):
                raise _SearchEnded("budget")
            self._skip(number, question.position, no_answer_reason(report, row))
            return
        search = replace(searched.search, answers=(*searched.search.answers, answer))
        self._keep(number, replace(searched, search=search))
        self._notify(number, question, answer)
        if report.interrupted:
            raise _SearchEnded("interrupted")

    def _report(
        self,
        searched: SearchedRange,
        question: Question,
        request: MeasureOptions,
        policy: Policy,
        reserve_s: float,
    ) -> Report:
        measuring_begins()  # a side may take minutes to install, without a report to lose
        began = self._project.caller.executor.now()
        left = self._left_s() - reserve_s
        if left <= 0.0:
            raise _SearchEnded("budget")
        context = self._project.session_context()
        settings = context.config.settings
        rounds = max(settings.rounds, DECIDING_ROUNDS)  # fewer carry no interval
        most = max(settings.max_rounds, rounds)
        settings = replace(settings, rounds=rounds, max_rounds=most, budget=left, inject={})
        config = structs.replace(context.config, policy=policy, settings=settings)
        base = self._range.side("base", searched.at(question.base))
        head = self._range.side("head", searched.at(question.position))
        try:
            return compare(replace(context, config=config), base, head, request)
        except NoTimeToImport as error:
            raise _SearchEnded("budget") from error
        finally:
            took_s = self._project.caller.executor.now() - began
            self._longest_s = max(self._longest_s, took_s)

    def _left_s(self) -> float:
        return self._options.budget_s - (self._project.caller.executor.now() - self._started)

    @property
    def _sought(self) -> SoughtMetric:
        assert self._state.sought is not None  # noqa: S101 (the ends are compared first)
        return self._state.sought

    def _require_same_environment(self, report: Report) -> None:
        if (environment := _environment_of_good(report)) != self._sought.environment:
            raise MeasureError(
                "another-environment",
                "the search so far was measured in another environment "
                f"({self._sought.environment}, now {environment})",
                "Start again with --restart.",
            )

    def _skip(self, number: int, position: int, why: str) -> None:
        searched = self._state.ranges[number]
        search = replace(searched.search, skipped=(*searched.search.skipped, position))
        reasons = {**searched.why, str(position): why[:_LONGEST]}
        self._keep(number, replace(searched, search=search, why=reasons))
        commit = searched.at(position)
        self._say(f"{commit.short}  skipped: {why}")

    def _keep(
        self, number: int, searched: SearchedRange, sought: SoughtMetric | None = None
    ) -> None:
        ranges = list(self._state.ranges)
        ranges[number] = searched
        self._state = replace(
            self._state, ranges=tuple(ranges), sought=sought or self._state.sought
        )
        self._file.write(self._state)

    def _notify(self, number: int, question: Question, answer: SessionAnswer) -> None:
        searched, sought = self._state.ranges[number], self._sought
        size = (
            format_change(math.exp(answer.change))
            if sought.scale == "log"
            else f"{'+' if answer.change > 0 else ''}{format_value(answer.change, sought.unit)}"
        )
        commit, base = searched.at(question.position), searched.at(question.base)
        rounds = counted(answer.rounds, "round")
        self._say(f"{commit.short}  {size} against {base.short}, {rounds}  {commit.subject}")

    def _say(self, text: str) -> None:
        if not self._options.quiet:
            self._project.caller.say(text, err=True)

    def _result(self, ended: Ended) -> Bisection:
        if self._state.sought is None:
            raise BudgetTooShort(
                "budget-too-short",
                "the time ended before both ends were compared",
                "Raise --budget, or choose fewer cases with -k.",
            )
        bisection = result_of(self._state, self._sought, ended, self._range.package)
        return with_explanations(bisection, self._state)

    def _explain(self) -> None:
        """Look into the culprits of a search that has its answer, in the time that is left."""
        bisection = result_of(self._state, self._sought, "done", self._range.package)
        for culprit in bisection.culprits if bisection.is_answered else ():
            newest = culprit.commits[-1].sha
            if newest not in self._state.whys:
                measuring_begins()
                if (left_s := self._left_s()) <= 0.0:
                    raise _SearchEnded("budget")
                within_s = min(WHY_S, left_s)
                why = explain_culprit(self._project, self._range, bisection, culprit, within_s)
                self._state = replace(self._state, whys={**self._state.whys, newest: why})
                self._file.write(self._state)


def _environment_of_good(report: Report) -> str:
    """Return the environment of base. Head's may differ, where a package is what differs."""
    return (report.base_environment or report.environment).key


def _nothing_moved(report: Report, whole: SearchedRange, metric: str) -> PerfciError:
    if metric and not any(row.metric == metric for row in report.results):
        known = sorted({row.metric for row in report.results})
        return UsageError(
            "unknown-metric",
            f"no case that was compared has the metric {metric!r}",
            f"It has {', '.join(known)}." if known else "See `perfci compare` of the two ends.",
        )
    for failure in report.failures:
        return MeasureError(
            "ends-not-compared",
            f"the ends can't be compared: {failure.case}, {failure.side}: {failure.message}",
            "Choose ends that can be measured. `perfci compare` of the two shows more.",
        )
    ends = f"{whole.good.short} and {whole.commits[-1].short}"
    return MeasureError(
        "nothing-moved",
        f"{f'{metric} does not differ' if metric else 'nothing differs'} between {ends} by more "
        "than chance",
        "Choose the case with -k and the metric with --metric, or an older good commit.",
    )


def explain_culprit(
    project: Project,
    search_range: SearchRange,
    bisection: Bisection,
    culprit: Culprit,
    within_s: float,
) -> Why:
    """Return what differs inside of the case between a culprit and the commit before it.

    A failure here is only reported as the reason why nothing is known: the answer stands.
    """
    before, after = NamedCommit(culprit.before, ""), culprit.commits[-1]
    sides = (search_range.side("base", before), search_range.side("head", after))
    context = project.session_context()
    try:
        with open_workplace(context, sides, benchmarks_of=search_range.benchmarks_of) as workplace:
            cases = selected_cases(workplace, MeasureOptions(only=(bisection.case,)))
            (state,) = case_states(cases, ("base", "head"))
            project.caller.step(f"looking inside {after.short} …")
            rows = (moved_row(bisection, culprit),)
            return explain_case(workplace, state, rows, within_s=within_s)
    except PerfciError as error:
        return Why(bisection.case, untold={"": error.message})
