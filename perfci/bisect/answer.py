"""The result of a search: what ``perfci bisect`` answers.

Schema ``perfci.bisection/1``. Field names are fixed: scripts read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perfci.model.finding import Why
from perfci.model.report import Comparison
from perfci.version import BISECTION_SCHEMA

Ended = Literal["done", "budget", "interrupted"]


_SHORT = 10
_SHA = 40


def short_name(sha: str) -> str:
    """Return a commit's sha shortened; a release's version is its name as it is."""
    return sha[:_SHORT] if len(sha) >= _SHA else sha


@dataclass(frozen=True, slots=True)
class NamedCommit:
    """A commit, and what it says of itself; or a release, named by its version."""

    sha: str
    subject: str

    @property
    def short(self) -> str:
        """Its name where it is read."""
        return short_name(self.sha)


@dataclass(frozen=True, slots=True)
class Culprit:
    """A change: made by one of ``commits``, the oldest first, which is mostly one.

    ``probability`` is that it lies among them. ``found`` says that it is 95 % or more and that no
    comparison could narrow them down: those between can't be measured, or differ by luck as much as
    by the change. ``ratio`` is the new level ÷ the old one with its 95 % interval, or
    ``difference`` stands, in the metric's unit. Without an interval the last was not compared with
    ``before``, and it is an estimate from other comparisons. ``before`` is the commit before them.
    ``merged_by`` is the merge that brought them, or empty. ``why`` is what instruments found to
    differ inside of the case between ``before`` and the last, or None while the search goes on.
    """

    commits: tuple[NamedCommit, ...]
    before: str
    probability: float
    found: bool
    improved: bool
    ratio: float | None = None
    ratio_lo: float | None = None
    ratio_hi: float | None = None
    difference: float | None = None
    difference_lo: float | None = None
    difference_hi: float | None = None
    merged_by: str = ""
    why: Why | None = None


@dataclass(frozen=True, slots=True)
class SkippedCommit:
    """A commit that could not be measured, and why."""

    commit: NamedCommit
    why: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """Commits after ``after`` up to ``last``, of which only the last was measured.

    Both have one level: what one of the ``commits`` changed and another took back is in no answer.
    """

    after: NamedCommit
    last: NamedCommit
    commits: int


@dataclass(frozen=True, slots=True)
class Bisection:
    """Result of a search over a range of commits, the oldest culprit first.

    ``ratio`` or ``difference`` is bad against good. ``comparisons`` and ``rounds`` are those of
    the whole search, earlier starts included. ``ended`` is budget or interrupted where the same
    command would go on. ``package``: the commits are releases of it, named by their versions.
    ``unseen`` is where changes that cancel out would not show, the longest first.
    """

    good: NamedCommit
    bad: NamedCommit
    commits: int
    case: str
    metric: str
    unit: str
    ratio: float | None
    difference: float | None
    culprits: tuple[Culprit, ...]
    skipped: tuple[SkippedCommit, ...]
    comparisons: int
    rounds: int
    ended: Ended
    package: str = ""
    unseen: tuple[Unseen, ...] = ()
    schema: str = BISECTION_SCHEMA

    @property
    def is_answered(self) -> bool:
        """Return whether each change is narrowed down as far as it can be.

        A budget that ends later takes the interval or the why away, and not the answer.
        """
        return (
            self.ended != "interrupted"
            and bool(self.culprits)
            and all(culprit.found for culprit in self.culprits)
        )


def moved_row(bisection: Bisection, culprit: Culprit) -> Comparison:
    """Return the change as a row of a report: what explains it comes first."""
    grew = (culprit.ratio or 1.0) > 1.0 or (culprit.difference or 0.0) > 0.0
    return Comparison(
        case=bisection.case,
        metric=bisection.metric,
        unit=bisection.unit,
        status="improved" if culprit.improved else "regressed",
        gate="info",
        method="none",
        base=None,
        head=None,
        ratio=culprit.ratio,
        ratio_lo=None,
        ratio_hi=None,
        threshold=0.0,
        p=None,
        p_adjusted=None,
        cohens_d=None,
        detectable=None,
        direction="higher" if grew == culprit.improved else "lower",
    )
