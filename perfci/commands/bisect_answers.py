"""Answers that a search takes from reports, the result it gives, and the state it keeps."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perfci.bisect import Bisection, Culprit, Ended, NamedCommit, SkippedCommit, Unseen
from perfci.bisect.posterior import SessionAnswer
from perfci.bisect.search import (
    LevelChange,
    Question,
    Search,
    changes,
    confirmation,
    next_question,
    unseen,
)
from perfci.errors import DamagedFile, SearchRunning
from perfci.files import read_regular, write_file
from perfci.measure.checkout.disk import explaining, take_if_free
from perfci.metrics import METRICS
from perfci.model.codec import CodecError, decode, encode
from perfci.model.finding import Why
from perfci.model.words import words
from perfci.model.worker import DECIDING_ROUNDS
from perfci.verdict.policy import MetricPolicy, Policy, metric_policy, standard_error, worse_by

if TYPE_CHECKING:
    from perfci.model.report import Comparison, Report

_LEAST_SOUGHT = 0.05


@dataclass(frozen=True, slots=True)
class SoughtMetric:
    """The metric that is searched for. Its changes are logarithms of ratios, or differences."""

    case: str
    metric: str
    unit: str
    direction: str
    scale: Literal["log", "difference"]
    environment: str


@dataclass(frozen=True, slots=True)
class SearchedRange:
    """Commits by first parents, the oldest first, and the progress of the search in them.

    ``good`` is the commit before the first. ``merged_by`` is the merge whose branch they are, or
    empty. ``why`` has the reason for each position that was skipped, by its number.
    """

    good: NamedCommit
    commits: tuple[NamedCommit, ...]
    search: Search
    merged_by: str = ""
    why: Mapping[str, str] = field(default_factory=dict)

    def at(self, position: int) -> NamedCommit:
        """Return the commit at a position of the search."""
        return self.commits[position - 1] if position else self.good


@dataclass(frozen=True, slots=True)
class SearchState:
    """All that a search knows. ``sought`` is None until the ends were compared.

    ``whys`` explain culprits, by the newest commit of each.
    """

    ranges: tuple[SearchedRange, ...]
    sought: SoughtMetric | None = None
    whys: Mapping[str, Why] = field(default_factory=dict)


class StateFile:
    """The state of one search, written whole after each step."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> SearchState | None:
        """Return the state of an earlier start, or None. DamagedFile where it can't be read."""
        try:
            return decode(read_regular(self._path), SearchState)
        except FileNotFoundError:
            return None
        except (CodecError, OSError) as error:
            raise DamagedFile(
                "damaged-search",
                f"the earlier search in {self._path} can't be read: {error}",
                "Start again with --restart.",
            ) from error

    def write(self, state: SearchState) -> None:
        """Keep ``state``. OutsideError where the disk is full."""
        with explaining(f"writing {self._path}"):
            write_file(self._path, encode(state))

    def forget(self) -> None:
        """Remove the state of an earlier start."""
        with explaining(f"removing {self._path}"):
            self._path.unlink(missing_ok=True)


@contextmanager
def state_file(folder: Path, *identity: str) -> Iterator[StateFile]:
    """Yield the state's file of the search that ``identity`` makes, and hold it meanwhile."""
    name = hashlib.sha256("\0".join(identity).encode(errors="surrogateescape")).hexdigest()[:16]
    with explaining(f"making {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = take_if_free(folder / f"{name}.lock")
    if lock is None:
        raise SearchRunning(
            "search-running",
            "another perfci searches the same range for the same change",
            "Wait until it has ended.",
        )
    try:
        yield StateFile(folder / f"{name}.json")
    finally:
        lock.release(remove=True)


def gated(policy: Policy, metric: str, threshold: float | None = None) -> Policy:
    """Return a policy in which ``metric`` alone decides how many rounds a session has.

    Its threshold is ``threshold``, or its own.
    """
    own = policy.metrics.get(metric)
    if own is None:
        own = metric_policy(METRICS[metric]) if metric in METRICS else None
    metrics = {
        name: replace(policy.metrics.get(name) or metric_policy(known), gate="info")
        for name, known in METRICS.items()
    }
    metrics[metric] = MetricPolicy(own.threshold if own else 0.05, "fail", "inconclusive")
    margins = {} if threshold is None else {metric: threshold}
    return replace(policy, metrics=metrics, margins=margins)


def ends_threshold(policy: Policy, metric: str, expected: float | None = None) -> float:
    """Return the threshold by which the ends are compared where ``metric`` is searched for.

    A user who names the metric knows that it moved, perhaps by less than fails a build. It is half
    of 5 %, or half of the metric's own threshold where that is smaller or an amount. With
    ``expected``, the ratio that the trend saw, it is half of that change where that is smaller.
    """
    own = policy.metrics.get(metric)
    known = METRICS.get(metric)
    threshold = own.threshold if own else known.threshold if known else _LEAST_SOUGHT
    if known is not None and (known.absolute or known.kind == "exact"):
        return threshold / 2.0
    threshold = min(threshold, _LEAST_SOUGHT)
    if expected and expected != 1.0:
        threshold = min(threshold, math.expm1(abs(math.log(expected))))
    return threshold / 2.0


def moved_most(report: Report, metric: str, alpha: float) -> Comparison | None:
    """Return the row to search for, or None where nothing of ``metric`` (any, if empty) moved.

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
        and answer_of(row, Question(1, 0.0), None) is not None
    ]

    def rank(row: Comparison) -> tuple[bool, bool, bool, float]:
        change = abs(worse_by(row)[0] or 0.0)
        times = change / row.threshold if row.threshold else math.inf
        return row.gate == "fail", row.status == "regressed", row.status == "improved", times

    return max(moved, key=rank, default=None)


def _adjusted(row: Comparison) -> float:
    p = row.p if row.p_adjusted is None else row.p_adjusted
    return 1.0 if p is None else p


def is_ratio(row: Comparison) -> bool:
    """Return whether a row's change is searched for as a ratio. Exact amounts may be zero."""
    return row.difference is None and row.method != "exact"


def answer_of(
    row: Comparison, question: Question, sought: SoughtMetric | None
) -> SessionAnswer | None:
    """Return a row's answer about the commit, or None where it carries no interval."""
    log = is_ratio(row) if sought is None else sought.scale == "log"
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
    same = row.method != "exact" and row.se is None and change == 0.0 and row.ratio_lo == 1.0
    if row.method == "exact" or same:
        return SessionAnswer(question.position, change, 0.0, 1.0, rounds, question.base)
    se = row.se if row.se is not None else standard_error(row)
    if se is None or row.df is None:
        return None
    return SessionAnswer(question.position, change, se, row.df, rounds, question.base)


def threshold_of(question: Question, sought: SoughtMetric) -> float:
    """Return a question's margin as the threshold of the metric: a share, or an amount."""
    return math.expm1(question.margin) if sought.scale == "log" else question.margin


def ran_out(report: Report, case: str) -> bool:
    """Return whether time ran out before a case had the rounds that carry an interval."""
    if case in report.same_code or any(failure.case == case for failure in report.failures):
        return False
    rows = [row for row in report.results if row.case == case]
    if any(finding.code == "budget-ended" for row in rows for finding in row.findings):
        return True
    return 0 < max((row.base.workers for row in rows if row.base), default=0) < DECIDING_ROUNDS


def no_answer_reason(report: Report, row: Comparison | None) -> str:
    """Return in words why a report has no answer about the commit."""
    for failure in report.failures:
        return f"{failure.kind}: {failure.message}"
    if row is None:
        return "it doesn't have the case"
    return "; ".join(map(words, row.findings)) or "it can't be compared with the good commit"


def next_of(state: SearchState, searched: SearchedRange) -> Question | None:
    """Return the next question of a range. A merged branch's first is whether it moved at all."""
    if not searched.merged_by:
        return next_question(searched.search)
    size = _size_of_merge(state, searched.merged_by)
    whole = searched.search.whole
    if whole is None:
        end = searched.search.length
        blocked = end in searched.search.skipped
        return None if blocked else Question(end, abs(size) / 2.0)
    return next_question(searched.search) if _holds(whole, size) else None


def next_confirmation(state: SearchState, searched: SearchedRange) -> Question | None:
    """Return the next comparison of a found change with the commit before it, or None."""
    return confirmation(searched.search, changes_of(state, searched))


def changes_of(state: SearchState, searched: SearchedRange) -> tuple[LevelChange, ...]:
    """Return a range's changes, or nothing for a branch that didn't move as its merge did."""
    whole = searched.search.whole
    if not whole:
        return ()
    if searched.merged_by and not _holds(whole, _size_of_merge(state, searched.merged_by)):
        return ()
    return changes(searched.search)


def result_of(
    state: SearchState, sought: SoughtMetric, ended: Ended, package: str = ""
) -> Bisection:
    """Return the answer that a state holds. ``package`` names the package of searched releases."""
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
        culprits=_culprits(state, whole, sought),
        skipped=tuple(
            SkippedCommit(searched.at(position), searched.why[str(position)])
            for searched in state.ranges
            for position in searched.search.skipped
        ),
        comparisons=sum(len(searched.search.answers) for searched in state.ranges),
        rounds=sum(
            answer.rounds for searched in state.ranges for answer in searched.search.answers
        ),
        ended=ended,
        package=package,
        unseen=tuple(
            Unseen(whole.at(before), whole.at(after), after - before)
            for before, after in (unseen(whole.search) if whole.search.whole else ())
        ),
    )


def _culprits(
    state: SearchState, searched: SearchedRange, sought: SoughtMetric
) -> tuple[Culprit, ...]:
    """Return a range's culprits, or instead of a merge those of its branch.

    Where the branch didn't move, both sides together make the change, and the merge is the culprit.
    """
    culprits: list[Culprit] = []
    for change in changes_of(state, searched):
        sha = searched.at(change.last).sha
        merged = (
            _culprits(state, branch_range, sought)
            for branch_range in state.ranges
            if branch_range.merged_by == sha
        )
        branch = next(filter(None, merged), ())
        culprits += branch or (_culprit(searched, change, sought),)
    return tuple(culprits)


def _size_of_merge(state: SearchState, sha: str) -> float:
    return next(
        change.size
        for searched in state.ranges
        for change in changes_of(state, searched)
        if searched.at(change.last).sha == sha
    )


def _holds(branch: float, merge: float) -> bool:
    """Return whether a branch moved as its merge did: in its direction, more than half as far."""
    return branch * merge > 0.0 and abs(branch) > abs(merge) / 2.0


def _culprit(searched: SearchedRange, change: LevelChange, sought: SoughtMetric) -> Culprit:
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


def with_explanations(bisection: Bisection, state: SearchState) -> Bisection:
    """Return an answer with the explanation of each culprit."""
    culprits = (
        replace(culprit, why=state.whys.get(culprit.commits[-1].sha))
        for culprit in bisection.culprits
    )
    return replace(bisection, culprits=tuple(culprits))
