"""Drives a search: compares the ends, measures commits, follows merges, explains culprits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec import structs

from perfci.bisect import Bisection, Culprit, Ended, NamedCommit, moved_row
from perfci.bisect.posterior import SessionAnswer
from perfci.bisect.search import Question, Search
from perfci.bisect.state import SearchedRange, SearchState, SoughtMetric
from perfci.commands.compare import MeasureOptions, compare, selected_cases
from perfci.commands.project import Project
from perfci.errors import (
    BudgetTooShort,
    MeasureError,
    NoTimeToImport,
    PerfciError,
    UnmeasurableCommit,
    UsageError,
)
from perfci.measure.checkout.commits import commit_of, commits, parents_of
from perfci.measure.checkout.git import Repository, ResolvedRev
from perfci.measure.explaining import explain_case
from perfci.measure.process_cleanup import measuring_begins
from perfci.measure.progress import case_states
from perfci.measure.workplace import RequestedSide, open_workplace
from perfci.metrics import METRICS
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.model.why import Why
from perfci.model.words import words
from perfci.units import counted, format_change, format_value
from perfci.verdict.policy import MetricPolicy, Policy, metric_policy, standard_error, worse_by

if TYPE_CHECKING:
    from perfci.model.report import Comparison, Report

_LONGEST_REASON = 300
"""Characters that are kept of the reason why a commit was skipped."""
_ENDS_THRESHOLD = 0.05
"""Highest relative threshold for comparing the ends, before it is halved."""
_WHY_SHARE = 0.05
"""Share of the budget that is kept for looking inside of culprits, up to ``WHY_S``."""
WHY_S = 30.0
"""Longest time for looking inside of a culprit, besides the case's own run time."""


@dataclass(frozen=True, slots=True)
class BisectOptions:
    """The options of a search, besides its range.

    ``selection`` and ``metric`` narrow down what is searched for in a range. If several cases or
    metrics remain, the search is for what moved most. A search for a change of the trend sets
    ``case`` (an id) and ``expected``, the ratio of bad to good that the trend saw. ``restart``
    forgets what an earlier start of the same search measured. ``quiet`` shows no answers on the
    way. ``history`` is the address of the history that has the change.
    """

    selection: str = ""
    metric: str = ""
    python: str | None = None
    budget_s: float = 3600.0
    restart: bool = False
    quiet: bool = False
    history: str | None = None
    case: str = ""
    expected: float | None = None


class CommitRange:
    """The commits of ``GOOD..BAD``, in ``searched``. ``identity`` tells searches apart.

    All of them run the newest commit's benchmark files, ``benchmarks_of``.
    """

    def __init__(self, project: Project, wanted: str, python: str | None) -> None:
        self._project = project
        self._python = python
        self.searched = commits_of(project.repository, wanted)
        self.benchmarks_of: ResolvedRev = project.repository.resolve(self.searched.commits[-1].sha)
        self.identity: tuple[str, ...] = (
            self.searched.good.sha,
            self.searched.commits[-1].sha,
            self.side("head", self.searched.commits[-1]).python,
        )
        asked_for = project.repository.resolve(wanted.rpartition("..")[0])
        if asked_for.commit != self.searched.good.sha:
            project.caller.say(
                f"{asked_for.short} is no first-parent ancestor of the newer end: the search "
                f"begins at {self.searched.good.sha[:10]}, {self.searched.good.subject}",
                err=True,
            )

    def side(self, name: str, commit: NamedCommit) -> RequestedSide:
        """Return a commit as a side to measure."""
        return self._project.side(name, commit.sha, self._python)

    def branches(self, sha: str) -> tuple[SearchedRange, ...]:
        """Return the branches that a commit merged, or nothing for a commit that is no merge."""
        first, *others = parents_of(self._project.repository, sha)
        branches = []
        for other in others:
            try:
                branches.append(commits_of(self._project.repository, f"{first}..{other}", sha))
            except UsageError:  # an unrelated history, whose commits compare with nothing
                continue
        return tuple(branches)


def commits_of(repository: Repository, wanted: str, merged_by: str = "") -> SearchedRange:
    """Return the first-parent commits of ``OLD..NEW``, and as ``good`` the commit before them."""
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
    return SearchedRange(NamedCommit(good.sha, good.subject), named, Search(len(named)), merged_by)


class _SearchEnded(Exception):
    """The search ends here. The same command continues it."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended)
        self.ended: Ended = ended


@dataclass(slots=True)
class BisectDriver:
    """A search in progress. ``keep`` writes its state after each step.

    ``started`` is a time of the caller's clock. ``_longest_s`` is how long the longest session took
    so far. ``_why_s`` is the time that is reserved for looking inside of culprits.
    """

    project: Project
    source: CommitRange
    options: BisectOptions
    state: SearchState
    keep: Callable[[SearchState], None]
    started: float
    _longest_s: float = 0.0
    _why_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._why_s = min(WHY_S, _WHY_SHARE * self.options.budget_s)

    def run(self) -> Bisection:
        """Search the range, then the branches of merges that turn out to be culprits.

        A signal ends the search with what is known. If nothing is known yet, raises
        KeyboardInterrupt.
        """
        ended: Ended = "done"
        for step in (self._search_ranges, self._confirm, self._explain):
            try:
                step()
            except _SearchEnded as enough:
                ended = enough.ended
            except KeyboardInterrupt:
                if self.state.sought is None:
                    raise
                ended = "interrupted"
            if ended == "interrupted" or self.state.sought is None:
                break
        if self.state.sought is None:
            raise BudgetTooShort(
                "budget-too-short",
                "the time ended before both ends were compared",
                "Raise --budget, or choose fewer cases with -k.",
            )
        return self.state.result(self.state.sought, ended)

    def _search_ranges(self) -> None:
        """Compare the ends, narrow down what moved, and go on in the branches of merges."""
        sought = self.state.sought or self._compare_ends()
        number = 0
        while number < len(self.state.ranges):
            searched = self.state.ranges[number]
            self._narrow_down(searched, sought)
            self._follow_merges(searched)
            number += 1

    def _confirm(self) -> None:
        """Compare each found change with the commit before it, unless the search did."""
        for searched in self.state.ranges:
            while question := self.state.next_confirmation(searched):
                self._ask(searched, self._sought, question, self._why_s)

    def _compare_ends(self) -> SoughtMetric:
        """Compare both ends, and choose the selected case and metric that moved most."""
        whole = self.state.ranges[0]
        question = Question(len(whole.commits), 0.0)
        only = (self.options.case,) if self.options.case else ()
        policy = replace(self.project.config.policy, two_sided=True)
        metric = self.options.metric
        if metric:
            policy = gated(policy, metric, ends_threshold(policy, metric, self.options.expected))
        report = self._report(whole, question, only, policy, 0.0)
        row = moved_most(report, metric, policy.alpha)
        if row is None:
            if report.interrupted:
                raise MeasureError(
                    "nothing-compared", "the search was interrupted before the ends were compared"
                )
            if any(_ran_out(report, row.case) for row in report.results):
                raise _SearchEnded("budget")
            raise _nothing_moved(report, whole, metric)
        log = _is_ratio(row)
        sought = SoughtMetric(
            row.case,
            row.metric,
            row.unit,
            row.direction,
            "log" if log else "difference",
            _environment_of_good(report),
        )
        answer = _answer_of(row, question, log=log)
        if answer is None:
            raise _nothing_moved(report, whole, metric)
        self.state.sought = sought
        self._add(whole, sought, answer, report)
        return sought

    def _narrow_down(self, searched: SearchedRange, sought: SoughtMetric) -> None:
        """Measure commits of one range until no question about it is left."""
        while question := self.state.next_question(searched):
            # leave time for a confirmation that will follow: as much as the longest session took
            confirmation = self.state.next_confirmation(searched)
            awaited = confirmation is not None and confirmation != question
            reserve_s = self._why_s + (self._longest_s if awaited else 0.0)
            self._ask(searched, sought, question, reserve_s)

    def _follow_merges(self, searched: SearchedRange) -> None:
        """Add the branches that the culprits of a range merged."""
        for change in self.state.changes(searched):
            sha = searched.at(change.last).sha
            known = any(branch.merged_by == sha for branch in self.state.ranges)
            if change.first == change.last and change.found and not known:
                self.state.ranges += self.source.branches(sha)
        self.keep(self.state)

    def _ask(
        self, searched: SearchedRange, sought: SoughtMetric, question: Question, reserve_s: float
    ) -> None:
        """Measure one commit, and keep the answer or the reason why it has no answer.

        ``reserve_s`` of the budget is left for later steps.
        """
        log = sought.scale == "log"
        threshold = math.expm1(question.margin) if log else question.margin
        policy = gated(self.project.config.policy, sought.metric, threshold)
        try:
            report = self._report(searched, question, (sought.case,), policy, reserve_s)
        except UnmeasurableCommit as error:
            self._skip(searched, question, error.message)
            return
        if question.base == 0:  # the good end
            _require_same_environment(report, sought)
        rows = (row for row in report.results if row.metric == sought.metric)
        row = next((row for row in rows if row.case == sought.case), None)
        answer = _answer_of(row, question, log=log) if row else None
        if row and row.status == "untouched":  # it ran none of the files that differ
            answer = SessionAnswer(
                question.position, 0.0, 0.0, 1.0, report.timing.rounds, question.base
            )
        if answer is not None:
            self._add(searched, sought, answer, report)
        elif report.interrupted:
            raise _SearchEnded("interrupted")
        elif _ran_out(report, sought.case):
            raise _SearchEnded("budget")
        else:
            self._skip(searched, question, _no_answer_reason(report, row))

    def _report(
        self,
        searched: SearchedRange,
        question: Question,
        only: tuple[str, ...],
        policy: Policy,
        reserve_s: float,
    ) -> Report:
        """Compare a question's two commits, in the time that is left beyond ``reserve_s``."""
        measuring_begins()  # building a side may take minutes, without a report to lose
        began = self.project.caller.executor.now()
        left = self._left_s() - reserve_s
        if left <= 0.0:
            raise _SearchEnded("budget")
        context = self.project.session_context()
        settings = context.config.settings
        rounds = max(settings.rounds, DECIDING_ROUNDS)  # fewer give no interval
        most = max(settings.max_rounds, rounds)
        settings = replace(settings, rounds=rounds, max_rounds=most, budget=left, inject={})
        config = structs.replace(context.config, policy=policy, settings=settings)
        options = MeasureOptions(
            self.options.selection,
            only=only,
            command="bisect",
            benchmarks_of=self.source.benchmarks_of,
        )
        base = self.source.side("base", searched.at(question.base))
        head = self.source.side("head", searched.at(question.position))
        try:
            _, report = compare(replace(context, config=config), base, head, options)
        except NoTimeToImport as error:
            raise _SearchEnded("budget") from error
        else:
            return report
        finally:
            took_s = self.project.caller.executor.now() - began
            self._longest_s = max(self._longest_s, took_s)

    def _left_s(self) -> float:
        return self.options.budget_s - (self.project.caller.executor.now() - self.started)

    @property
    def _sought(self) -> SoughtMetric:
        assert self.state.sought is not None  # noqa: S101 (the ends are compared first)
        return self.state.sought

    def _skip(self, searched: SearchedRange, question: Question, why: str) -> None:
        searched.skip(question.position, why[:_LONGEST_REASON])
        self.keep(self.state)
        self._say(f"{searched.at(question.position).short}  skipped: {why}")

    def _add(
        self, searched: SearchedRange, sought: SoughtMetric, answer: SessionAnswer, report: Report
    ) -> None:
        """Keep and show an answer. An interrupted session ends the search after its answer."""
        searched.add(answer)
        self.keep(self.state)
        size = (
            format_change(math.exp(answer.change))
            if sought.scale == "log"
            else f"{'+' if answer.change > 0 else ''}{format_value(answer.change, sought.unit)}"
        )
        commit, base = searched.at(answer.position), searched.at(answer.base)
        rounds = counted(answer.rounds, "round")
        self._say(f"{commit.short}  {size} against {base.short}, {rounds}  {commit.subject}")
        if report.interrupted:
            raise _SearchEnded("interrupted")

    def _say(self, text: str) -> None:
        if not self.options.quiet:
            self.project.caller.say(text, err=True)

    def _explain(self) -> None:
        """Look into the culprits of a search that has its answer, in the time that is left."""
        bisection = self.state.result(self._sought, "done")
        for culprit in bisection.culprits if bisection.is_answered else ():
            if culprit.why is None:
                measuring_begins()
                if (left_s := self._left_s()) <= 0.0:
                    raise _SearchEnded("budget")
                why = self._explain_culprit(bisection, culprit, min(WHY_S, left_s))
                self.state.whys[culprit.commits[-1].sha] = why
                self.keep(self.state)

    def _explain_culprit(self, bisection: Bisection, culprit: Culprit, within_s: float) -> Why:
        """Return what differs inside of the case between a culprit and the commit before it.

        A failure becomes the reason why nothing is known. It doesn't change the search's answer.
        """
        before, after = NamedCommit(culprit.before, ""), culprit.commits[-1]
        sides = (self.source.side("base", before), self.source.side("head", after))
        context, files = self.project.session_context(), self.source.benchmarks_of
        try:
            with open_workplace(context, sides, benchmarks_of=files) as workplace:
                cases = selected_cases(workplace, MeasureOptions(only=(bisection.case,)))
                (state,) = case_states(cases, ("base", "head"))
                self.project.caller.step(f"looking inside {after.short} …")
                rows = (moved_row(bisection, culprit),)
                return explain_case(workplace, state, rows, within_s=within_s)
        except PerfciError as error:
            return Why(bisection.case, untold={"": error.message})


def _environment_of_good(report: Report) -> str:
    """Return base's environment. Head's differs if a side's own build installs other versions."""
    return (report.base_environment or report.environment).key


def _require_same_environment(report: Report, sought: SoughtMetric) -> None:
    if (environment := _environment_of_good(report)) != sought.environment:
        raise MeasureError(
            "another-environment",
            "the search so far was measured in another environment "
            f"({sought.environment}, now {environment})",
            "Start again with --restart.",
        )


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


def gated(policy: Policy, metric: str, threshold: float | None = None) -> Policy:
    """Return a policy in which ``metric`` alone decides how many rounds a session has.

    A change in either direction counts. Other metrics are only shown. Without ``threshold``,
    ``metric`` keeps its own.
    """
    usual = policy.metrics.get(metric)
    if usual is None:
        usual = metric_policy(METRICS[metric]) if metric in METRICS else None
    metrics = {name: replace(policy.of(known), gate="info") for name, known in METRICS.items()}
    metrics[metric] = MetricPolicy(usual.threshold if usual else 0.05, "fail", "inconclusive")
    margins = {} if threshold is None else {metric: threshold}
    return replace(policy, metrics=metrics, margins=margins, two_sided=True)


def ends_threshold(policy: Policy, metric: str, expected: float | None = None) -> float:
    """Return the threshold for comparing the ends when ``metric`` is searched for.

    A user who names the metric knows that it moved, perhaps by less than the metric's threshold. So
    this one is half of that. For a ratio, it is also at most half of 5 %, and at most half of the
    change in ``expected``, the ratio that the trend saw.
    """
    configured = policy.metrics.get(metric)
    known = METRICS.get(metric)
    default = known.threshold if known else _ENDS_THRESHOLD
    threshold = configured.threshold if configured else default
    if known is not None and (known.absolute or known.kind == "exact"):
        return threshold / 2.0
    threshold = min(threshold, _ENDS_THRESHOLD)
    if expected and expected != 1.0:
        threshold = min(threshold, math.expm1(abs(math.log(expected))))
    return threshold / 2.0


def moved_most(report: Report, metric: str, alpha: float) -> Comparison | None:
    """Return the row to search for, or None if nothing of ``metric`` (any, if empty) moved.

    Gating rows come first, then regressions before improvements, then the largest change in units
    of the threshold.
    """
    moved = [
        row
        for row in report.results
        if (row.metric == metric or not metric)
        and (
            row.status in {"regressed", "improved"}
            or (row.method == "paired_t" and row.p is not None and _adjusted(row) < alpha)
        )
        and _answer_of(row, Question(1, 0.0), log=_is_ratio(row)) is not None
    ]

    def rank(row: Comparison) -> tuple[bool, bool, bool, float]:
        change = abs(worse_by(row)[0] or 0.0)
        times = change / row.threshold if row.threshold else math.inf
        return row.gate == "fail", row.status == "regressed", row.status == "improved", times

    return max(moved, key=rank, default=None)


def _adjusted(row: Comparison) -> float:
    """Return the row's adjusted p, else its p, else 1."""
    p = row.p if row.p_adjusted is None else row.p_adjusted
    return 1.0 if p is None else p


def _is_ratio(row: Comparison) -> bool:
    """Return whether a row's change is searched for as a ratio. An exact amount may be zero."""
    return row.difference is None and row.method != "exact"


def _answer_of(row: Comparison, question: Question, *, log: bool) -> SessionAnswer | None:
    """Return a row's answer about the commit, or None if the row has no interval.

    With ``log`` the answer is the logarithm of the ratio.
    """
    if log:
        change = math.log(row.ratio) if row.ratio else None
    elif row.difference is not None:
        change = row.difference
    else:
        centers = [side.center if side else None for side in (row.base, row.head)]
        change = None if None in centers else centers[1] - centers[0]  # type: ignore[operator]
    rounds = row.base.workers if row.base else 0
    if change is None or not math.isfinite(change):
        return None
    # the interval is the point 1: both sides had the same values, so there is no standard error
    same = row.method != "exact" and row.se is None and change == 0.0 and row.ratio_lo == 1.0
    if row.method == "exact" or same:
        return SessionAnswer(question.position, change, 0.0, 1.0, rounds, question.base)
    se = row.se if row.se is not None else standard_error(row)
    if se is None or row.df is None:
        return None
    return SessionAnswer(question.position, change, se, row.df, rounds, question.base)


def _ran_out(report: Report, case: str) -> bool:
    """Return whether time ran out before a case had enough rounds for an interval."""
    rows = [row for row in report.results if row.case == case]
    if any(failure.case == case for failure in report.failures):
        return False
    if any(row.status == "untouched" for row in rows):
        return False
    if any(finding.code == "budget-ended" for row in rows for finding in row.findings):
        return True
    return 0 < max((row.base.workers for row in rows if row.base), default=0) < DECIDING_ROUNDS


def _no_answer_reason(report: Report, row: Comparison | None) -> str:
    """Return in words why a report has no answer about the commit."""
    for failure in report.failures:
        return f"{failure.kind}: {failure.message}"
    if row is None:
        return "it doesn't have the case"
    return "; ".join(map(words, row.findings)) or "it can't be compared with the good commit"
