"""``bisect``: which commit of a range made a case slower, or faster.

Each step compares one commit with good as ``compare`` does, until it is clear on which side of the
change it is; ``perfci.bisect`` says which commit, and when the answer is known. All commits run the
bad one's benchmark files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perfci.app.bisect_answers import (
    answer_of,
    gated,
    is_ratio,
    moved_most,
    ran_out,
    threshold_of,
    why_no_answer,
)
from perfci.app.bisect_state import Range, Sought, State, StateFile, state_file
from perfci.app.compare import Request, compare
from perfci.app.nightly_scope import OF_THE_COMMIT
from perfci.bisect.posterior import Answer
from perfci.bisect.search import Change, Question, Search, changes, next_question
from perfci.checkout.commits import commit_of, commits, parents_of
from perfci.errors import MeasureError, PerfciError, UsageError
from perfci.model.bisection import Bisection, Culprit, Ended, NamedCommit, SkippedCommit
from perfci.model.settings import DECIDING_ROUNDS
from perfci.units import counted, format_change, format_value
from perfci.verdict.policy import Policy

if TYPE_CHECKING:
    from perfci.app.project import Project
    from perfci.checkout.repository import Repository, Resolved
    from perfci.model.report import Report

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class BisectRequest:
    """What is asked for: a range ``GOOD..BAD``, and a metric of a case, or what moved most.

    ``restart`` forgets what an earlier start of the same search found. ``quiet`` says no answer on
    the way.
    """

    commits: str
    selection: str = ""
    metric: str = ""
    python: str | None = None
    budget_s: float = 3600.0
    restart: bool = False
    quiet: bool = False


def bisect(project: Project, request: BisectRequest) -> Bisection:
    """Search the range, going on where an earlier start ended. MeasureError where nothing moved."""
    repository = project.repository
    whole = _range(repository, request.commits)
    asked_for = repository.resolve(request.commits.rpartition("..")[0])
    if asked_for.commit != whole.good.sha:
        project.caller.say(
            f"{asked_for.short} is no first-parent ancestor of the newer end: the search begins at "
            f"{whole.good.sha[:10]}, {whole.good.subject}",
            err=True,
        )
    around = project.surroundings()
    folder = around.cache / repository.id / "bisect"
    ends = (whole.good.sha, whole.commits[-1].sha)
    python = project.side("head", ends[1], request.python).python
    with state_file(folder, *ends, request.selection, request.metric, python) as file:
        if request.restart:
            file.forget()
        started = around.executor.now()
        work = _Bisect(project, request, file, file.read() or State((whole,)), started)
        return work.run()


def _range(repository: Repository, wanted: str, merged_by: str = "") -> Range:
    """Return the commits of ``OLD..NEW`` by first parents, and the one before them."""
    if ".." not in wanted:
        raise UsageError(
            "bad-range",
            f"{wanted!r} is no range of commits",
            "Write GOOD..BAD with both ends, as v1.2..main.",
        )
    found = commits(repository, wanted)
    before = parents_of(repository, found[-1].sha)
    if not before:
        raise UsageError(
            "unrelated-commits",
            f"no commit of {wanted} was made on its older end",
            "Choose an older end that the newer one was made from.",
        )
    good = commit_of(repository, before[0])
    named = tuple(NamedCommit(one.sha, one.subject) for one in reversed(found))
    return Range(NamedCommit(good.sha, good.subject), named, Search(len(named)), merged_by)


class _Enough(Exception):
    """The search ends here, and the same command goes on."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended)
        self.ended: Ended = ended


class _Bisect:
    """One search in the works; its state is written after each step."""

    def __init__(
        self,
        project: Project,
        request: BisectRequest,
        file: StateFile,
        state: State,
        started: float,
    ) -> None:
        self._project = project
        self._request = request
        self._file = file
        self._state = state
        self._started = started
        self._benchmarks_of: Resolved = project.repository.resolve(state.ranges[0].commits[-1].sha)

    def run(self) -> Bisection:
        """Search the range, then the branches of merges that turn out to be culprits."""
        ended: Ended = "done"
        try:
            if self._state.sought is None:
                self._compare_ends()
            number = 0
            while number < len(self._state.ranges):
                self._search(number)
                self._follow_merges(number)
                number += 1
        except _Enough as enough:
            ended = enough.ended
        return self._result(ended)

    def _compare_ends(self) -> None:
        """Compare both ends, and choose what moved most of what is asked for."""
        whole = self._state.ranges[0]
        question = Question(len(whole.commits), 0.0)
        request = Request(
            self._request.selection, command="bisect", benchmarks_of=self._benchmarks_of
        )
        policy = self._project.config.policy
        metric = self._request.metric
        report = self._report(whole, question, request, gated(policy, metric) if metric else policy)
        row = moved_most(report, metric, policy.alpha)
        if row is None:
            if report.interrupted:
                raise MeasureError("nothing-compared", "the ends were not compared: interrupted")
            if any(ran_out(report, one.case) for one in report.results):
                raise _Enough("budget")
            raise _nothing_moved(report, whole, metric)
        sought = Sought(
            row.case,
            row.metric,
            row.unit,
            row.direction,
            "log" if is_ratio(row) else "difference",
            report.environment.key,
        )
        answer = answer_of(row, question, sought)
        if answer is None:
            raise _nothing_moved(report, whole, metric)
        self._keep(0, replace(whole, search=Search(len(whole.commits), (answer,))), sought)
        self._notify(0, question, answer)

    def _search(self, number: int) -> None:
        """Ask until nothing is left to ask in one range."""
        while question := self._next(number):
            self._ask(number, question)

    def _next(self, number: int) -> Question | None:
        """Return the next question of a range: of a merged branch, whether it moved at all."""
        searched = self._state.ranges[number]
        if not searched.merged_by:
            return next_question(searched.search)
        size = self._size_of_merge(searched.merged_by)
        whole = searched.search.whole
        if whole is None:
            end = searched.search.length
            blocked = end in searched.search.skipped
            return None if blocked else Question(end, abs(size) / 2.0)
        return next_question(searched.search) if _holds(whole, size) else None

    def _changes(self, searched: Range) -> tuple[Change, ...]:
        """Return a range's changes; none of a branch that didn't move as its merge did."""
        whole = searched.search.whole
        if not whole:
            return ()
        if searched.merged_by and not _holds(whole, self._size_of_merge(searched.merged_by)):
            return ()
        return changes(searched.search)

    def _size_of_merge(self, sha: str) -> float:
        return next(
            change.size
            for one in self._state.ranges
            for change in self._changes(one)
            if one.at(change.last).sha == sha
        )

    def _follow_merges(self, number: int) -> None:
        """Add the branches that the culprits of a range merged."""
        searched = self._state.ranges[number]
        repository = self._project.repository
        for change in self._changes(searched):
            sha = searched.at(change.last).sha
            known = any(one.merged_by == sha for one in self._state.ranges)
            if change.first != change.last or not change.found or known:
                continue
            first, *others = parents_of(repository, sha)
            for other in others:
                try:
                    branch = _range(repository, f"{first}..{other}", sha)
                except UsageError:  # a history of its own: nothing to compare its commits with
                    continue
                self._state = replace(self._state, ranges=(*self._state.ranges, branch))
        self._file.write(self._state)

    def _ask(self, number: int, question: Question) -> None:
        """Measure one commit, and keep the answer or why there is none."""
        searched, sought = self._state.ranges[number], self._sought
        policy = gated(self._project.config.policy, sought.metric, threshold_of(question, sought))
        request = Request(only=(sought.case,), command="bisect", benchmarks_of=self._benchmarks_of)
        try:
            report = self._report(searched, question, request, policy)
        except PerfciError as error:
            if error.slug not in OF_THE_COMMIT:
                raise
            self._skip(number, question.position, error.message)
            return
        self._require_same_environment(report)
        rows = (one for one in report.results if one.metric == sought.metric)
        row = next((one for one in rows if one.case == sought.case), None)
        answer = answer_of(row, question, sought) if row else None
        if sought.case in report.same_code:
            answer = Answer(question.position, 0.0, 0.0, 1.0, report.timing.rounds, question.base)
        if answer is None:
            if report.interrupted:
                raise _Enough("interrupted")
            if ran_out(report, sought.case):
                raise _Enough("budget")
            self._skip(number, question.position, why_no_answer(report, row))
            return
        search = replace(searched.search, answers=(*searched.search.answers, answer))
        self._keep(number, replace(searched, search=search))
        self._notify(number, question, answer)
        if report.interrupted:
            raise _Enough("interrupted")

    def _report(
        self, searched: Range, question: Question, request: Request, policy: Policy
    ) -> Report:
        left = self._left_s()
        if left <= 0.0:
            raise _Enough("budget")
        around = self._project.surroundings()
        settings = around.config.settings
        rounds = max(settings.rounds, DECIDING_ROUNDS)  # fewer carry no interval: no answer
        most = max(settings.max_rounds, rounds)
        settings = replace(settings, rounds=rounds, max_rounds=most, budget=left, inject={})
        config = replace(around.config, policy=policy, settings=settings)
        python = self._request.python
        base, head = searched.at(question.base), searched.at(question.position)
        return compare(
            replace(around, config=config),
            self._project.side("base", base.sha, python),
            self._project.side("head", head.sha, python),
            request,
        )

    def _left_s(self) -> float:
        return self._request.budget_s - (self._project.caller.executor.now() - self._started)

    @property
    def _sought(self) -> Sought:
        assert self._state.sought is not None  # noqa: S101 (the ends are compared first)
        return self._state.sought

    def _require_same_environment(self, report: Report) -> None:
        if report.environment.key != self._sought.environment:
            raise MeasureError(
                "another-environment",
                "the search so far was measured in another environment "
                f"({self._sought.environment}, now {report.environment.key})",
                "Begin anew with --restart.",
            )

    def _skip(self, number: int, position: int, why: str) -> None:
        searched = self._state.ranges[number]
        search = replace(searched.search, skipped=(*searched.search.skipped, position))
        reasons = {**searched.why, str(position): why[:_LONGEST]}
        self._keep(number, replace(searched, search=search, why=reasons))
        commit = searched.at(position)
        self._say(f"{commit.sha[:10]}  skipped: {why}")

    def _keep(self, number: int, searched: Range, sought: Sought | None = None) -> None:
        ranges = list(self._state.ranges)
        ranges[number] = searched
        self._state = State(tuple(ranges), sought or self._state.sought)
        self._file.write(self._state)

    def _notify(self, number: int, question: Question, answer: Answer) -> None:
        searched, sought = self._state.ranges[number], self._sought
        size = (
            format_change(math.exp(answer.change))
            if sought.scale == "log"
            else f"{'+' if answer.change > 0 else ''}{format_value(answer.change, sought.unit)}"
        )
        commit, base = searched.at(question.position), searched.at(question.base)
        rounds = counted(answer.rounds, "round")
        self._say(f"{commit.sha[:10]}  {size} against {base.sha[:10]}, {rounds}  {commit.subject}")

    def _say(self, text: str) -> None:
        if not self._request.quiet:
            self._project.caller.say(text, err=True)

    def _result(self, ended: Ended) -> Bisection:
        state, sought = self._state, self._state.sought
        if sought is None:
            raise MeasureError(
                "budget-too-short",
                "the time ended before both ends were compared",
                "Raise --budget, or choose fewer cases with -k.",
            )
        whole = state.ranges[0]
        change = whole.search.whole or 0.0
        return Bisection(
            good=whole.good,
            bad=whole.commits[-1],
            commits=len(whole.commits),
            case=sought.case,
            metric=sought.metric,
            unit=sought.unit,
            ratio=math.exp(change) if sought.scale == "log" else None,
            difference=change if sought.scale == "difference" else None,
            culprits=self._culprits(whole),
            skipped=tuple(
                SkippedCommit(one.at(position), one.why[str(position)])
                for one in state.ranges
                for position in one.search.skipped
            ),
            comparisons=sum(len(one.search.answers) for one in state.ranges),
            rounds=sum(answer.rounds for one in state.ranges for answer in one.search.answers),
            ended=ended,
        )

    def _culprits(self, searched: Range) -> tuple[Culprit, ...]:
        """Return a range's culprits; where a merge is one whose branch moved, too, the branch's.

        Where it didn't, both sides together make the change: the merge itself.
        """
        found: list[Culprit] = []
        for change in self._changes(searched):
            sha = searched.at(change.last).sha
            merged = (self._culprits(one) for one in self._state.ranges if one.merged_by == sha)
            branch = next(filter(None, merged), ())
            found += branch or (_culprit(searched, change, self._sought),)
        return tuple(found)


def _holds(branch: float, merge: float) -> bool:
    """Say whether a branch moved as its merge did: more than half as far, in its direction."""
    return branch * merge > 0.0 and abs(branch) > abs(merge) / 2.0


def _culprit(searched: Range, change: Change, sought: Sought) -> Culprit:
    named = searched.commits[change.first - 1 : change.last]
    log = sought.scale == "log"

    def ratio(size: float | None) -> float | None:
        return math.exp(size) if log and size is not None else None

    def difference(size: float | None) -> float | None:
        return None if log else size

    return Culprit(
        commits=named,
        before=searched.at(change.first - 1).sha,
        probability=change.probability,
        found=change.found,
        improved=(change.size > 0.0) != (sought.direction == "lower"),
        ratio=ratio(change.size),
        ratio_lo=ratio(change.lo),
        ratio_hi=ratio(change.hi),
        difference=difference(change.size),
        difference_lo=difference(change.lo),
        difference_hi=difference(change.hi),
        merged_by=searched.merged_by,
    )


def _nothing_moved(report: Report, whole: Range, metric: str) -> PerfciError:
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
            "Choose ends that can be measured; `perfci compare` of the two shows more.",
        )
    ends = f"{whole.good.sha[:10]} and {whole.commits[-1].sha[:10]}"
    return MeasureError(
        "nothing-moved",
        f"{metric or 'nothing'} differs between {ends} by more than chance",
        "Choose the case with -k and the metric with --metric, or an older good commit.",
    )
