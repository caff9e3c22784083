"""Findings: codes with arguments. The reason why a case moved is a ranked list of findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

IN_WORDS = "in-words"
"""The code of a reason that has words only, in its argument ``text``."""
FOLLOWS = "follows"
"""Code of the remark that a tail changed as the median did, and is shown in its row."""
DONE_ONCE = "done-once"
"""Code of a remark, and of a reason: warm calls take next to nothing of an early call's time."""
LOOKS_SLOWER = "looks-slower"
"""Code of a reason: a row is not decided, and looks worse than noise."""
NOTHING_EXERCISED = "nothing-exercised"
"""Code of a finding on a whole report: no case ran any code that the change touches."""

Method = Literal["paired_t", "welch_t", "exact", "none"]
Plain = str | int | float
"""A value of a finding's argument."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about a row."""

    code: str
    arguments: Mapping[str, Plain] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.code, frozenset(self.arguments.items())))


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict."""

    code: str
    case: str = ""
    metric: str = ""
    arguments: Mapping[str, Plain] = field(default_factory=dict)
    because: Finding | None = None

    def __hash__(self) -> int:
        arguments = frozenset(self.arguments.items())
        return hash((self.code, self.case, self.metric, arguments, self.because))


def finding(code: str, **arguments: Plain) -> Finding:
    """Return the finding ``code`` with these arguments."""
    return Finding(code, arguments)


def stated(text: str, case: str = "", metric: str = "") -> Reason:
    """Return a reason that has no code of its own, only words."""
    return Reason(IN_WORDS, case, metric, {"text": text})


def because(code: str, why: Finding) -> Finding:
    """Return the finding ``code`` whose reason is the finding ``why``.

    Its arguments are those of ``why``, and ``why``'s code as ``why``.
    """
    return Finding(code, {**why.arguments, "why": why.code})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence of head against base in both sides' values. Intervals are of ``confidence``.

    ``ratio`` is head ÷ base. ``difference`` is head - base, and is given instead on request. ``se``
    and ``df`` are on the scale of the test: logarithms for ratios. ``detectable`` is the smallest
    change that this test alone could have seen at ``alpha``, as a share of base. It has no value on
    logarithms: the caller derives it from ``se`` at the family's alpha. Without evidence there is
    no p, and a finding says why.
    """

    method: Method
    ratio: float | None
    ratio_lo: float | None
    ratio_hi: float | None
    difference: float | None = None
    difference_lo: float | None = None
    difference_hi: float | None = None
    p: float | None
    welch_p: float | None = None
    cohens_d: float | None
    detectable: float | None
    se: float | None = None
    df: float | None = None
    findings: tuple[Finding, ...] = ()
    confidence: float = 0.95


NO_EVIDENCE = Evidence(
    method="none", ratio=None, ratio_lo=None, ratio_hi=None, p=None, cohens_d=None, detectable=None
)


# Why one case moved: the differences between the sides that instruments find inside it.


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the sides that one instrument found.

    ``share`` is its share of the change that it explains, or 0 where no change was measured.
    """

    instrument: str
    code: str
    arguments: Mapping[str, Plain] = field(default_factory=dict)
    seconds: float = 0.0
    bytes: float = 0.0
    share: float = 0.0
    metric: str = ""
    file: str = ""
    line: int = 0
    hunk: bool = False
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Explanation:
    """A reason why a comparison moved: a graph break, an import, a cold-start phase."""

    case: str
    metric: str
    kind: str
    text: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Why:
    """The differences that explain the change of one case."""

    case: str
    differences: tuple[Difference, ...] = ()
    untold: Mapping[str, str] = field(default_factory=dict)
