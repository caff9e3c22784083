"""``nightly``: a branch's commits measured one after the other, each recorded when it is done.

The newest commit's benchmark files are run on all of them, as in a comparison: a new benchmark
gets its past, and what moved is the library. What a kill interrupts is the commit in the works.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfci.commands.bisect import ChangeSearch, search_new
from perfci.commands.bisect_search import BisectOptions
from perfci.commands.compare import MeasureOptions, compare, now, run, selected_cases, within
from perfci.commands.nightly_scope import (
    Gap,
    NightlyOptions,
    NightPlan,
    NightScope,
    failed_run,
    find_scope,
    gaps,
    known_broken,
    plan_night,
    slowest_case,
    time_for,
    whole,
)
from perfci.commands.project import Project, require_own
from perfci.errors import BudgetTooShort, NoTimeToImport, PerfciError, UnmeasurableCommit
from perfci.history.history import OpenHistory, open_history
from perfci.history.interchange import keeping
from perfci.history.records import outcome_of, recorded_run
from perfci.measure.checkout.commits import Commit
from perfci.measure.checkout.disk import explaining, take_if_free
from perfci.measure.checkout.git import ResolvedRev
from perfci.measure.workplace import RequestedSide, SessionContext, open_workplace
from perfci.model.case import Case
from perfci.model.report import Report
from perfci.model.run import Environment, GateOutcome, RecordedRun, Run, Side
from perfci.trend.timelines import current_name
from perfci.units import format_duration

_SHARE_OF_SAME = 0.2
_SHARE_OF_SEARCHES = 0.3


@dataclass(slots=True)
class NightSummary:
    """The results of a night.

    ``left`` gaps had no time, ``taken`` gaps are measured by another runner, ``cut`` gaps were
    interrupted. ``notes`` are those of the session that was ``interrupted``. ``commits`` are the
    wanted commits, the newest first. ``searched`` are searches for the commits of the trend's
    changes.
    """

    environment: str = ""
    recorded: list[RecordedRun] = field(default_factory=list)
    outcome: GateOutcome | None = None
    left: list[Gap] = field(default_factory=list)
    taken: list[Gap] = field(default_factory=list)
    cut: list[Gap] = field(default_factory=list)
    no_time_for_same: bool = False
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()
    wall_s: float = 0.0
    budget_s: float = 0.0
    searched: tuple[ChangeSearch, ...] = ()

    def require_progress(self) -> None:
        """Raise BudgetTooShort where not one case was done within the budget."""
        if not self.recorded and self.left and not self.interrupted:
            raise BudgetTooShort(
                "budget-too-short",
                f"not one case was done: {format_duration(self.wall_s)} went by, and what is left "
                f"of the {format_duration(self.budget_s)} of --budget is too short for more",
                "Raise --budget (a commit's cases are measured in turns, and all are done near its "
                "end), or choose fewer cases with -k.",
            )


def nightly(project: Project, options: NightlyOptions) -> NightSummary:
    """Measure what the history lacks of the requested commits, and record it."""
    plan = plan_night(project, options)
    with open_history(project.history_address(options.history)) as history:
        require_own(history, project.config, project.root)
        began = project.caller.executor.now()
        summary = record_nights(project.session_context(), history, plan)
        summary.wall_s = project.caller.executor.now() - began
    if plan.bisect and not summary.interrupted:
        left_s = options.budget_s - summary.wall_s
        summary.searched = search_new(
            project,
            summary.environment,
            BisectOptions(
                python=options.python, budget_s=left_s, quiet=True, history=options.history
            ),
            now=now(),
        )
        ends = [search.answer.ended for search in summary.searched if search.answer]
        summary.interrupted = "interrupted" in ends
    summary.budget_s = options.budget_s
    summary.commits = plan.commits
    return summary


def record_nights(context: SessionContext, history: OpenHistory, plan: NightPlan) -> NightSummary:
    """Measure what ``history`` lacks of the plan's commits, the newest first, within the budget.

    Each is recorded when it is done. PerfciError where something other than the commit is at fault.
    Earlier commits stay recorded.
    """
    night = _Night(context, history, plan)
    try:
        night.measure_all()
    except KeyboardInterrupt:
        night.summary.interrupted = True
    return night.summary


class _Night:
    """One night in progress."""

    def __init__(self, context: SessionContext, history: OpenHistory, plan: NightPlan) -> None:
        self.summary = NightSummary()
        self._context = context
        self._history = history
        self._plan = plan
        self._began = now()
        self._newest = context.repository.resolve(plan.commits[0].sha)
        self._end = self._context.executor.now() + plan.options.budget_s
        self._for_same = _SHARE_OF_SAME * plan.options.budget_s if plan.options.same else 0.0
        self._took: list[tuple[int, float]] = []

    def measure_all(self) -> None:
        """Measure the newest commit, compare it with itself, and fill the other gaps."""
        failed = (
            ()
            if self._plan.options.retry_failed
            else self._history.runs_without_points(self._plan.runner)
        )
        shas = [commit.sha for commit in (*self._plan.commits, *self._plan.older)]
        scope = find_scope(shas, self._see, known_broken(failed))
        self.summary.environment = scope.environment.key
        for commit in self._plan.commits:
            if error := scope.broken.get(commit.sha):
                self._record_error(scope, commit, scope.cases, error)
        todo = [gap for gap in self._gaps(scope, self._plan.commits) if gap.sha not in scope.broken]
        if todo and todo[0].sha == self._newest.sha:
            # without a limit: one that leaves no fifth could not be compared with itself
            self._fill(scope, todo.pop(0))
        if not self.summary.interrupted:
            self._compare_with_itself(scope)
        if self._plan.bisect:  # searches get the rest, and at least their share
            self._end -= _SHARE_OF_SEARCHES * self._plan.options.budget_s
        for gap in todo:
            if self.summary.interrupted:
                return
            self._fill(scope, gap)

    def _see(self, sha: str) -> tuple[Environment, tuple[Case, ...]]:
        with open_workplace(
            within(self._context, self._left_s()),
            (self._wanted("head", sha),),
            benchmarks_of=self._benchmarks_of(sha),
        ) as workplace:
            cases = selected_cases(workplace, MeasureOptions(self._plan.options.selection))
            measurable = tuple(case for case in cases if not case.skip)
            return workplace.environments["head"], measurable

    def _gaps(self, scope: NightScope, commits: tuple[Commit, ...]) -> list[Gap]:
        key, newest = scope.environment.key, self._newest.sha
        known = self._measured(key, failed=not self._plan.options.retry_failed)
        if self._plan.once_a_day and not self._measured_today(key):
            earlier = self._measured(key, failed=False)
            known -= {(sha, case) for sha, case in earlier if sha == newest}
        return list(
            gaps([commit.sha for commit in commits], [case.id for case in scope.cases], known)
        )

    def _measured(self, environment: str, *, failed: bool) -> frozenset[tuple[str, str]]:
        """Return each (sha, case) in the history, with both names of a renamed case."""
        aliases = self._context.config.aliases
        pairs = self._history.measured(environment, failed=failed)
        return pairs | {(sha, current_name(case, aliases)) for sha, case in pairs}

    def _measured_today(self, environment: str) -> bool:
        nights = self._history.runs(environment=environment)
        days = {run.measured_at[:10] for run in nights if run.sha == self._newest.sha}
        return self._began[:10] in days

    def _fill(self, scope: NightScope, gap: Gap) -> None:
        """Measure one commit and record it, unless another runner does or there is no time."""
        within_s = time_for(gap, self._left_s(), slowest_case(self._took))
        if within_s is None:
            self.summary.left.append(gap)
            return
        context = self._context
        with claimed(self._history, context.cache, scope.environment.key, gap.sha) as is_claimed:
            if not is_claimed:
                self.summary.taken.append(gap)
                return
            commit = next(commit for commit in self._plan.commits if commit.sha == gap.sha)
            for still in self._gaps(scope, (commit,)):  # another runner may have recorded it
                self._measure(scope, commit, still, within_s)

    def _measure(self, scope: NightScope, commit: Commit, gap: Gap, within_s: float) -> None:
        self._context.shown.step(f"{commit.sha[:10]} {commit.subject}")
        wanted = tuple(case for case in scope.cases if case.id in gap.cases)
        started = self._context.executor.now()
        try:
            measured, report = run(
                within(self._context, within_s),
                self._wanted("head", gap.sha),
                MeasureOptions(
                    self._plan.options.selection,
                    only=gap.cases,
                    benchmarks_of=self._benchmarks_of(gap.sha),
                ),
            )
        except (UnmeasurableCommit, NoTimeToImport) as error:
            self._record_error(scope, commit, wanted, error)
            return
        self._took.append((len(gap.cases), self._context.executor.now() - started))
        self._end_where_cut_short(report)
        settings = self._context.config.settings
        recorded = self._record(commit, whole(measured, report, wanted, settings))
        known = {*recorded.failed, *(point.case for point in recorded.points)}
        if cut := tuple(case for case in gap.cases if case not in known):
            short = self.summary.cut if self.summary.interrupted else self.summary.left
            short.append(Gap(gap.sha, cut))

    def _compare_with_itself(self, scope: NightScope) -> None:
        """Compare the newest commit with itself, once a day: any alarm is noise."""
        key, runner = scope.environment.key, self._plan.runner
        done = (
            outcome.same and outcome.environment == key and outcome.runner == runner
            for outcome in self._history.outcomes()
            if outcome.created_at[:10] == self._began[:10]
        )
        measured = self._history.measured(key, failed=False)
        cases = tuple(case.id for case in scope.cases if (self._newest.sha, case.id) in measured)
        within_s = min(self._for_same, self._left_s(), self._context.config.settings.budget)
        if not self._plan.options.same or not cases or any(done):
            return
        if within_s <= 2 * len(cases) * (slowest_case(self._took) or 0.0):  # of two sides
            self.summary.no_time_for_same = True
            return
        try:
            report = compare(
                within(self._context, within_s),
                self._wanted("base", self._newest.sha),
                self._wanted("head", self._newest.sha),
                MeasureOptions(
                    self._plan.options.selection,
                    only=cases,
                    command="nightly",
                    created_at=self._began,
                ),
            )
        except NoTimeToImport:
            self.summary.no_time_for_same = True
            return
        self._end_where_cut_short(report)
        outcome = outcome_of(report, runner=runner)
        if outcome is not None and outcome.comparisons:
            with keeping([outcome], self._context.cache):
                self._history.record_outcome(outcome)
            self.summary.outcome = outcome

    def _end_where_cut_short(self, report: Report) -> None:
        """End the night with an interrupted session, unless that only deleted its own tree."""
        if report.interrupted and not any(
            failure.kind == "deleted_tree" for failure in report.failures
        ):
            self.summary.interrupted = True
            self.summary.notes = report.notes

    def _record_error(
        self, scope: NightScope, commit: Commit, wanted: tuple[Case, ...], error: PerfciError
    ) -> None:
        """Record the error for every case of the commit, where the commit is at fault."""
        if isinstance(error, NoTimeToImport):
            self.summary.left.append(Gap(commit.sha, tuple(case.id for case in wanted)))
            return
        side = Side(commit.sha, commit.sha, self._plan.python)
        nothing = Run(side, scope.environment, now(), ())
        self._record(commit, failed_run(nothing, wanted, error))

    def _record(self, commit: Commit, measured: Run) -> RecordedRun:
        if (
            commit.sha == self._newest.sha
        ):  # a night that passes midnight must not take the next one's place
            measured = replace(measured, created_at=self._began)
        recorded = recorded_run(
            measured,
            source="nightly",
            runner=self._plan.runner,
            subject=commit.subject,
            branch=self._plan.branch,
            committed_at=commit.committed_at,
            position=commit.position,
        )
        if recorded.points or recorded.failed:
            with keeping([recorded], self._context.cache):
                self._history.record([recorded])
            self.summary.recorded.append(recorded)
        return recorded

    def _benchmarks_of(self, sha: str) -> ResolvedRev | None:
        return None if sha == self._newest.sha else self._newest

    def _wanted(self, name: str, sha: str) -> RequestedSide:
        return RequestedSide(name, self._context.repository.resolve(sha), self._plan.python)

    def _left_s(self) -> float:
        return self._end - self._context.executor.now()


@contextmanager
def claimed(history: OpenHistory, cache: Path, environment: str, sha: str) -> Iterator[bool]:
    """Yield whether the commit was free to measure. It is then held until the end.

    A lock file in ``cache`` keeps other processes of this machine away, and the history's own claim
    other machines. The system lets go of both when the holder dies.
    """
    digest = hashlib.sha256(f"{history.shown}\0{environment}\0{sha}".encode()).hexdigest()
    folder = cache / "claims"
    with explaining(f"claiming a commit in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_if_free(folder / f"{digest[:24]}.lock")
    if lock is None:
        yield False
        return
    try:
        with history.claim(environment, sha) as is_claimed:
            yield is_claimed
    finally:
        lock.release(remove=True)
