"""``nightly``: a branch's commits measured one after the other, each recorded when it is done.

All commits run the newest commit's benchmark files, as in a comparison. So a new benchmark gets its
past, and what moved is the library. A kill loses only the commit that is being measured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from perfci.commands.compare import MeasureOptions, now, run, selected_cases, within
from perfci.commands.history import history_address, require_own, runner_name
from perfci.commands.project import Project, interpreter
from perfci.config.keys import MeasureSettings
from perfci.errors import (
    MeasureError,
    NoTimeToImport,
    PerfciError,
    UnbuiltCommit,
    UnmeasurableCommit,
)
from perfci.history.runs import recorded_run
from perfci.history.store import OpenHistory, open_history
from perfci.measure.checkout.commits import Commit, branch_of, commits
from perfci.measure.checkout.git import ResolvedRev
from perfci.measure.discovery import CUT_SHORT
from perfci.measure.selection import is_whole
from perfci.measure.workplace import RequestedSide, open_workplace
from perfci.model.case import Case, Failure
from perfci.model.report import Report
from perfci.model.run import CaseRun, Environment, RecordedRun, Run, Side
from perfci.trend.timelines import current_name
from perfci.units import counted

_MOST_TRIED = 5
"""Commits that are opened in vain before the night gives up."""
_MARGIN = 1.2
"""A commit is begun only if at least its expected time, multiplied by this, is left."""
_NO_TIME = "no time"
_LONGEST_MESSAGE = 600
"""Characters of a failure's message that are recorded."""


@dataclass(frozen=True, slots=True)
class NightlyOptions:
    """The options of ``nightly``.

    ``branch`` is the default branch if it is empty. Its ``last`` commits are recorded. A range
    ``commits`` replaces both.
    """

    branch: str | None = None
    commits: str | None = None
    last: int | None = None
    runner: str | None = None
    budget_s: float = 3600.0
    selection: str = ""
    retry_failed: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """A commit, and its cases that have neither a point nor a recorded failure."""

    sha: str
    cases: tuple[str, ...]


@dataclass(slots=True)
class NightSummary:
    """The results of a night.

    ``left`` has the gaps that stay, with the reasons. ``notes`` are those of the session that was
    ``interrupted``. ``commits`` are the wanted commits, the newest first.
    """

    environment: str = ""
    recorded: list[RecordedRun] = field(default_factory=list)
    left: list[tuple[Gap, str]] = field(default_factory=list)
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()

    def require_progress(self) -> None:
        """Raise MeasureError if not one case was done within the budget."""
        if not self.recorded and self.left and not self.interrupted:
            raise MeasureError(
                "budget-too-short",
                "no case was finished, and the rest of --budget is too short for one",
                "Raise --budget (a commit's cases are measured in turns, and all are done near its "
                "end), or choose fewer cases with -k.",
            )


def nightly(project: Project, options: NightlyOptions) -> NightSummary:
    """Measure what the history lacks of the requested commits, and record it.

    PerfciError if something other than a commit is at fault. What was recorded before stays
    recorded.
    """
    night = _Night(project, options)
    summary = night.summary
    with open_history(history_address(project.config, project.root)) as history:
        require_own(history, project.config, project.root)
        try:
            night.measure_all(history)
        except KeyboardInterrupt:
            summary.interrupted = True
    return summary


class _Night:
    """Measures the commits of one night, the newest first.

    A night belongs to the day on which it began (UTC), and ends within the budget.
    """

    def __init__(self, project: Project, options: NightlyOptions) -> None:
        repository, config = project.repository, project.config
        newest = options.commits.rpartition("..")[2] if options.commits else options.branch
        rev = newest or repository.default_base() or "HEAD"
        count = None if options.commits else options.last or 1
        chosen = commits(repository, options.commits or rev, most=count)
        self.summary = NightSummary(commits=chosen)
        self._options = options
        self._branch = branch_of(repository, rev)
        self._python = interpreter(config, project.root)
        self._runner = options.runner or runner_name()
        self._context = project.session_context()
        self._newest = repository.resolve(chosen[0].sha)
        self._took: list[tuple[int, float]] = []
        self._cases: tuple[Case, ...] = ()
        self._broken: dict[str, PerfciError] = {}

    def measure_all(self, history: OpenHistory) -> None:
        """Measure what the history lacks, the newest commit first."""
        self._history = history
        self._began = now()
        self._end = self._context.executor.now() + self._options.budget_s
        self._environment = self._find_cases()
        self.summary.environment = self._environment.key
        for gap in self._gaps(self.summary.commits):
            if self.summary.interrupted:
                return
            commit = next(commit for commit in self.summary.commits if commit.sha == gap.sha)
            if error := self._broken.get(gap.sha):
                self._record_error(commit, self._wanted(gap), error)
            else:
                self._fill(commit, gap)

    def _find_cases(self) -> Environment:
        """Return the environment, and keep the cases, of the newest commit that can be opened.

        A commit whose import ran out of time took half of what was left, so the next one is tried.
        Raises MeasureError if none of the first ``_MOST_TRIED`` can be opened.
        """
        tried = self.summary.commits[:_MOST_TRIED]
        for commit in tried:
            try:
                return self._open(commit.sha)
            except (UnbuiltCommit, NoTimeToImport) as error:
                self._broken[commit.sha] = error
        first, *_ = errors = list(self._broken.values())
        for hurried in errors:
            if isinstance(hurried, NoTimeToImport):
                raise hurried
        newest = counted(len(tried), "commit")
        why = f"none of the newest {newest} could be measured: {first.message}"
        raise MeasureError("nothing-builds", why, first.advice)

    def _open(self, sha: str) -> Environment:
        with open_workplace(
            within(self._context, self._left_s()),
            (self._side(sha),),
            benchmarks_of=self._benchmarks_of(sha),
        ) as workplace:
            cases = selected_cases(workplace, MeasureOptions(self._options.selection))
            self._cases = tuple(case for case in cases if not case.skip)
            return workplace.environments["head"]

    def _gaps(self, commits: tuple[Commit, ...]) -> tuple[Gap, ...]:
        """Return what is to be measured of ``commits``.

        Unless a range was given, the newest commit is due again each day.
        """
        key, newest = self._environment.key, self._newest.sha
        known = self._measured(key, failed=not self._options.retry_failed)
        if self._options.commits is None and not self._measured_today(key):
            earlier = self._measured(key, failed=False)
            known -= {(sha, case) for sha, case in earlier if sha == newest}
        shas = [commit.sha for commit in commits]
        return gaps(shas, [case.id for case in self._cases], known)

    def _measured(self, environment: str, *, failed: bool) -> frozenset[tuple[str, str]]:
        """Return each (sha, case) in the history, with both names of a renamed case."""
        aliases = self._context.config.aliases
        pairs = self._history.measured(environment, failed=failed)
        return pairs | {(sha, current_name(case, aliases)) for sha, case in pairs}

    def _measured_today(self, environment: str) -> bool:
        nights = self._history.runs(environment=environment)
        days = {run.measured_at[:10] for run in nights if run.sha == self._newest.sha}
        return self._began[:10] in days

    def _fill(self, commit: Commit, gap: Gap) -> None:
        """Measure one commit and record it, unless another runner has done so or time is short."""
        within_s = time_for(gap, self._left_s(), slowest_case(self._took))
        if within_s is None:
            self.summary.left.append((gap, _NO_TIME))
            return
        for still in self._gaps((commit,)):  # none if another runner has recorded it
            self._measure(commit, still, within_s)

    def _measure(self, commit: Commit, gap: Gap, within_s: float) -> None:
        self._context.shown.step(f"{commit.sha[:10]} {commit.subject}")
        wanted = self._wanted(gap)
        started = self._context.executor.now()
        try:
            measured, report = run(
                within(self._context, within_s),
                self._side(gap.sha),
                MeasureOptions(
                    self._options.selection,
                    only=gap.cases,
                    benchmarks_of=self._benchmarks_of(gap.sha),
                ),
            )
        except (UnmeasurableCommit, NoTimeToImport) as error:
            self._record_error(commit, wanted, error)
            return
        self._took.append((len(gap.cases), self._context.executor.now() - started))
        self._end_where_cut_short(report)
        settings = self._context.config.settings
        recorded = self._record(commit, _whole(measured, report, wanted, settings))
        known = {*recorded.failed, *(point.case for point in recorded.points)}
        if cut := tuple(case for case in gap.cases if case not in known):
            why = "interrupted" if self.summary.interrupted else _NO_TIME
            self.summary.left.append((Gap(gap.sha, cut), why))

    def _wanted(self, gap: Gap) -> tuple[Case, ...]:
        return tuple(case for case in self._cases if case.id in gap.cases)

    def _end_where_cut_short(self, report: Report) -> None:
        """End the night after an interrupted session, unless only its own tree was deleted."""
        if report.interrupted and not any(
            failure.kind == "deleted_tree" for failure in report.failures
        ):
            self.summary.interrupted = True
            self.summary.notes = report.notes

    def _record_error(self, commit: Commit, wanted: tuple[Case, ...], error: PerfciError) -> None:
        """Record the error for every case, unless time was lacking: then the commit stays a gap."""
        if isinstance(error, NoTimeToImport):
            gap = Gap(commit.sha, tuple(case.id for case in wanted))
            self.summary.left.append((gap, _NO_TIME))
            return
        message = _shortened(error.message)
        failures = (Failure(case.id, "head", "checkout", error.slug, message) for case in wanted)
        side = Side(commit.sha, commit.sha, self._python)
        nothing = Run(side, self._environment, now(), (), failures=tuple(failures))
        self._record(commit, nothing)

    def _record(self, commit: Commit, measured: Run) -> RecordedRun:
        if commit.sha == self._newest.sha:
            # a night that passes midnight must not count as the next night
            measured = replace(measured, created_at=self._began)
        recorded = recorded_run(
            measured,
            source="nightly",
            runner=self._runner,
            subject=commit.subject,
            branch=self._branch,
            committed_at=commit.committed_at,
            position=commit.position,
        )
        if recorded.points or recorded.failed:
            self._history.record([recorded])
            self.summary.recorded.append(recorded)
        return recorded

    def _benchmarks_of(self, sha: str) -> ResolvedRev | None:
        return None if sha == self._newest.sha else self._newest

    def _side(self, sha: str) -> RequestedSide:
        return RequestedSide("head", self._context.repository.resolve(sha), self._python)

    def _left_s(self) -> float:
        return self._end - self._context.executor.now()


def _whole(measured: Run, report: Report, wanted: Sequence[Case], settings: MeasureSettings) -> Run:
    """Return the run as it is recorded: without cases that were cut short, with all that failed.

    A case of ``wanted`` that has neither points nor a failure then is measured another time. So are
    the cases of a file that had too little time to import: that says nothing about the commit.
    """
    tried = {case_run.case.id for case_run in measured.cases}
    return replace(
        measured,
        cases=tuple(
            _brief(case_run)
            for case_run in measured.cases
            if case_run.failures or is_whole(case_run, settings)
        ),
        failures=tuple(_untried([case for case in wanted if case.id not in tried], report)),
    )


def _untried(wanted: Sequence[Case], report: Report) -> Iterable[Failure]:
    """Yield a failure for each case that was not tried, unless only time was lacking."""
    broken = {failure.case: failure for failure in report.failures}
    for case in wanted:
        failure = broken.get(case.file)
        if case.id in report.skipped:
            yield Failure(case.id, "head", "discovery", "skipped", report.skipped[case.id])
        elif failure is None:
            message = "this commit lacks the case"
            yield Failure(case.id, "head", "discovery", "absent", message)
        elif failure.kind != CUT_SHORT:
            yield replace(failure, case=case.id, message=_shortened(failure.message), log_tail="")


def _brief(case_run: CaseRun) -> CaseRun:
    """Return ``case_run`` with shortened messages and without logs."""
    failures = (replace(f, message=_shortened(f.message), log_tail="") for f in case_run.failures)
    return replace(case_run, failures=tuple(failures))


def _shortened(message: str) -> str:
    """Keep the beginning and the end of a message."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[: _LONGEST_MESSAGE // 3]} … {message[-2 * _LONGEST_MESSAGE // 3 :]}"


def gaps(
    shas: Sequence[str], cases: Sequence[str], known: Collection[tuple[str, str]]
) -> tuple[Gap, ...]:
    """Return the gaps of ``shas``, in their order: each (sha, case) that ``known`` lacks."""
    missing = (Gap(sha, tuple(case for case in cases if (sha, case) not in known)) for sha in shas)
    return tuple(gap for gap in missing if gap.cases)


def slowest_case(took: Sequence[tuple[int, float]]) -> float | None:
    """Return the longest time of a case in s. ``took`` has (number of cases, s) per commit."""
    return max((seconds / cases for cases, seconds in took if cases), default=None)


def time_for(gap: Gap, left_s: float, case_s: float | None) -> float | None:
    """Return how many s of ``left_s`` the gap may take, or None if it would not be done in time.

    ``case_s`` is the longest time of a case until now, None before the first. A commit gets twice
    the expected time or half of what is left, whichever is more: a commit that hangs leaves time
    for others, and a slow one is not cut.
    """
    if left_s <= 0:
        return None
    if case_s is None:
        return left_s
    expected = case_s * len(gap.cases)
    if expected * _MARGIN > left_s:
        return None
    return min(left_s, max(2 * expected, left_s / 2))
