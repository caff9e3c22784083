"""The scope of a night: its commits, the environment here, and the cases each commit must have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfci.commands.project import Project, interpreter
from perfci.commands.recorder import runner_name
from perfci.errors import MeasureError, NoTimeToImport, PerfciError, UnbuiltCommit
from perfci.measure.checkout.commits import Commit, branch_of, commits
from perfci.measure.checkout.worktrees import SUBMODULE_COMMIT_MISSING
from perfci.measure.discovery import CUT_SHORT
from perfci.measure.selection import is_whole
from perfci.model.case import Case, Failure
from perfci.model.report import Report
from perfci.model.run import CaseRun, Environment, Run
from perfci.model.worker import MeasureSettings
from perfci.units import counted

_MARGIN = 1.2
"""A commit is begun where there is this much more time than the slowest one took."""


@dataclass(frozen=True, slots=True)
class NightlyOptions:
    """The options of ``nightly``.

    ``branch`` is the default one where it is empty. Its ``last`` commits are recorded, or a range
    ``commits`` instead of both. ``last_of_each_day`` leaves out all but each day's last (UTC).
    ``same`` compares the newest commit with itself once a day. ``bisect`` searches for the commits
    of new changes, by the configuration where it is None.
    """

    branch: str | None = None
    commits: str | None = None
    last: int | None = None
    last_of_each_day: bool = False
    history: str | None = None
    runner: str | None = None
    python: str | None = None
    budget_s: float = 3600.0
    selection: str = ""
    same: bool = True
    retry_failed: bool = False
    bisect: bool | None = None


@dataclass(frozen=True, slots=True)
class NightPlan:
    """The commits of a night, the newest first, and what measures them.

    ``older`` are commits before them, which show the environment where none of them can be built.
    ``once_a_day`` measures the newest again where its last run is of an earlier day (UTC). A night
    is of the day on which it began. ``runner`` is this machine's name.
    """

    options: NightlyOptions
    commits: tuple[Commit, ...]
    older: tuple[Commit, ...]
    branch: str
    python: str
    runner: str
    bisect: bool

    @property
    def once_a_day(self) -> bool:
        """Return whether a branch's newest commit is meant, and no range."""
        return self.options.commits is None


_OLDER = 5


def plan_night(project: Project, options: NightlyOptions) -> NightPlan:
    """Return the requested commits, a few before them, and what measures them."""
    repository, config = project.repository, project.config
    newest = options.commits.rpartition("..")[2] if options.commits else options.branch
    rev = newest or repository.default_base() or "HEAD"
    most = None if options.commits else options.last or 1
    chosen = commits(repository, options.commits or rev, most=most)
    older = commits(repository, chosen[-1].sha, most=1 + _OLDER)[1:]
    if options.last_of_each_day:
        kept = last_of_each_day({commit.sha: commit.committed_at for commit in chosen})
        chosen = tuple(commit for commit in chosen if commit.sha in kept)
    return NightPlan(
        options,
        chosen,
        older,
        branch=branch_of(repository, rev),
        python=interpreter(options.python, config.python, project.root, launcher=config.launcher),
        runner=options.runner or runner_name(),
        bisect=config.bisect if options.bisect is None else options.bisect,
    )


_UNBUILT = frozenset({"build-failed", "no-benchmark-imports", SUBMODULE_COMMIT_MISSING})
"""The slugs of ``UnbuiltCommit``, as kinds of recorded failures."""

_LONGEST = 600


def whole(
    measured: Run,
    report: Report,
    wanted: Sequence[Case],
    settings: MeasureSettings,
) -> Run:
    """Return the run as it is recorded: without cases that were cut short, with all that failed.

    Each of ``wanted`` then has points or a failure, or is measured another time. A file that had
    too little time to import says nothing about the commit.
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


def failed_run(template: Run, wanted: Sequence[Case], error: PerfciError) -> Run:
    """Return the run of a commit that ended with ``error`` before anything was measured."""
    return replace(
        template,
        cases=(),
        failures=tuple(
            Failure(case.id, "head", "checkout", error.slug, _shortened(error.message))
            for case in wanted
        ),
    )


def _untried(wanted: Sequence[Case], report: Report) -> Iterable[Failure]:
    broken = {failure.case: failure for failure in report.failures}
    for case in wanted:
        failure = broken.get(case.file)
        if case.id in report.skipped:
            yield Failure(case.id, "head", "discovery", "skipped", report.skipped[case.id])
        elif failure is None:
            message = "this commit has no such case"
            yield Failure(case.id, "head", "discovery", "absent", message)
        elif failure.kind != CUT_SHORT:
            yield replace(failure, case=case.id, message=_shortened(failure.message), log_tail="")


def _brief(case_run: CaseRun) -> CaseRun:
    failures = (replace(f, message=_shortened(f.message), log_tail="") for f in case_run.failures)
    return replace(case_run, failures=tuple(failures))


def _shortened(message: str) -> str:
    """Keep the beginning and the end of a message."""
    if len(message) <= _LONGEST:
        return message
    return f"{message[: _LONGEST // 3]} … {message[-2 * _LONGEST // 3 :]}"


_MOST_TRIED = 5


@dataclass(frozen=True, slots=True)
class NightScope:
    """The environment, the cases, and the commits that could not be opened to find them."""

    environment: Environment
    cases: tuple[Case, ...]
    broken: Mapping[str, PerfciError] = field(default_factory=dict)


def find_scope(
    shas: Sequence[str],
    see: Callable[[str], tuple[Environment, tuple[Case, ...]]],
    known_broken: frozenset[str],
) -> NightScope:
    """Return what the first of ``shas`` shows that can be opened, tried by ``see``.

    One that is known to be broken here is not built again to find that out. One that had no time
    to import took half of it: the next has a try. MeasureError where the first five can't be
    opened, or all are known to be broken.
    """
    broken: dict[str, PerfciError] = {}
    for sha in (sha for sha in shas if sha not in known_broken):
        try:
            environment, cases = see(sha)
        except (UnbuiltCommit, NoTimeToImport) as error:
            broken[sha] = error
            if len(broken) == _MOST_TRIED:
                break
        else:
            return NightScope(environment, cases, broken)
    hurried = next((error for error in broken.values() if isinstance(error, NoTimeToImport)), None)
    if hurried is not None:
        raise hurried
    if broken:
        first = next(iter(broken.values()))
        raise MeasureError(
            "nothing-builds",
            f"of the newest {counted(len(broken), 'commit')} none can be measured: {first.message}",
            first.advice,
        )
    raise MeasureError(
        "nothing-builds",
        "all of these commits failed here before, each before anything was measured",
        "Mend the newest, or try all of them again with --retry-failed.",
    )


def known_broken(failed: Sequence[tuple[str, Mapping[str, str]]]) -> frozenset[str]:
    """Return the commits of runs without a point that ended before anything was measured.

    ``failed`` has each run's kind of failure by case.
    """
    return frozenset(sha for sha, kinds in failed if kinds and _UNBUILT.issuperset(kinds.values()))


@dataclass(frozen=True, slots=True)
class Gap:
    """A commit, and those of its cases that have neither a point nor a recorded failure."""

    sha: str
    cases: tuple[str, ...]


def gaps(
    shas: Sequence[str], cases: Sequence[str], known: Collection[tuple[str, str]]
) -> tuple[Gap, ...]:
    """Return what ``known``, pairs of (sha, case), lacks of ``cases``, in the order of ``shas``."""
    missing = (Gap(sha, tuple(case for case in cases if (sha, case) not in known)) for sha in shas)
    return tuple(gap for gap in missing if gap.cases)


def last_of_each_day(committed_at: Mapping[str, str]) -> tuple[str, ...]:
    """Return of each UTC day the commit that stands first, where the newest come first.

    Times are ISO 8601 in UTC by commit. A nightly run would have seen these and no others.
    """
    days: dict[str, str] = {}
    for sha, moment in committed_at.items():
        days.setdefault(moment[:10], sha)
    return tuple(days.values())


def slowest_case(took: Sequence[tuple[int, float]]) -> float | None:
    """Return the most s that one case took, of commits with (how many cases, how many s)."""
    return max((seconds / cases for cases, seconds in took if cases), default=None)


def time_for(gap: Gap, left_s: float, case_s: float | None) -> float | None:
    """Return how many s of ``left_s`` the gap may take, None where it would not be done in time.

    ``case_s`` is what a case took at the most until now, None before the first. A commit gets
    twice that or half of what is left, whichever is more: one that hangs leaves time for others,
    and one that is only slow is not cut.
    """
    if left_s <= 0:
        return None
    if case_s is None:
        return left_s
    expected = case_s * len(gap.cases)
    if expected * _MARGIN > left_s:
        return None
    return min(left_s, max(2 * expected, left_s / 2))
