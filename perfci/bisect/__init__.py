"""Pure: a noisy search for the commits at which a metric changed. Knows no git and no session.

Positions count commits after the good one: 0 is good, the last is bad. A change is a log ratio, or
a difference for metrics that may be zero, of a commit against good.

Here is the result of ``perfci bisect``, schema ``perfci.bisection/1``. Field names are fixed:
scripts read them, and ``docs/reference/fields.toml`` says what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perfci.version import BISECTION_SCHEMA

Ended = Literal["done", "budget", "interrupted"]
_SHORT = 10
"""Characters that are shown of a commit's sha."""


def short_name(sha: str) -> str:
    """Return the name of a commit that people read."""
    return sha[:_SHORT]


@dataclass(frozen=True, slots=True)
class NamedCommit:
    """A commit."""

    sha: str
    subject: str

    @property
    def short(self) -> str:
        """The name that people read."""
        return short_name(self.sha)


@dataclass(frozen=True, slots=True)
class Culprit:
    """A change and the commits that contain its cause, usually one."""

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


@dataclass(frozen=True, slots=True)
class SkippedCommit:
    """A commit that could not be measured."""

    commit: NamedCommit
    why: str


@dataclass(frozen=True, slots=True)
class Bisection:
    """Result of a search over a range of commits."""

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
    schema: str = BISECTION_SCHEMA

    @property
    def is_answered(self) -> bool:
        """Return whether each change is narrowed down as far as it can be.

        If the budget ends after that, the interval may be missing, but not the answer.
        """
        return (
            self.ended != "interrupted"
            and bool(self.culprits)
            and all(culprit.found for culprit in self.culprits)
        )
