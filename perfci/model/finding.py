"""Findings: codes with arguments. Why a case moved is a ranked list of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

IN_WORDS = "in-words"
"""The code of a reason that is given in words alone: its ``text``."""
ANCESTORS_DIFFER = "ancestors-differ"
"""The code of a remark: variance between ancestors has widened the interval."""
DELAYED_MORE = "delayed-more"
"""The code of a remark: head's bursts were kept off their core more often than base's."""
TWO_SPEEDS = "two-speeds"
"""The code of a remark: the change is that within each of two speeds of processes."""
OVERSTATED = "may-be-overstated"
"""The code of a remark: the interval of a regression reaches below its threshold."""
OF_WORKERS = frozenset(
    {
        "guard-failed", "spare-dynamic", "spare-buckets", "flop-share",
        "slow-rank", "rank-most", "rank-differs", "collective-counts", "collective-bytes",
        "output-nan",
    }
)  # fmt: skip
"""Codes of the remarks that a worker may make on a metric. Others are not believed."""
REMARKS = frozenset(
    {
        "round-on-one-side", "below-floor", "no-ratio", "no-ratio-of-mean",
        "arithmetic-means", "one-session-of-spread", "one-ancestor", ANCESTORS_DIFFER,
        DELAYED_MORE, "busy-threads", OVERSTATED, TWO_SPEEDS, "does-nothing",
        "accept-from-fork", "accept-unbounded", "accept-expired", "accept-exceeded",
        *OF_WORKERS,
    }
)  # fmt: skip
"""Codes of remarks on a row's numbers; they are no reason for its status."""
NOTHING_EXERCISED = "nothing-exercised"
"""The code of a finding on a report: no case ran any code that the change touches."""
WARNS = frozenset(
    {
        "accepted", "warned", "warned-uncounted", "warned-undecided", "lost-metric",
        NOTHING_EXERCISED,
    }
)  # fmt: skip
"""Codes of reasons that warn, and fail nothing."""
JUDGED = frozenset(
    {
        "looks-regressed", "looks-improved", "looks-unchanged", "below-threshold", "small-effect",
        "too-few", "too-few-ancestors", "no-evidence", "detectable", "measure-together",
        "out-of-reach", "near-threshold", "more-rounds", "no-regression", OVERSTATED,
    }
)  # fmt: skip
"""Codes that only the correction over a family gives. When a row is judged in another family (a
whole report instead of a shard), they are dropped and found again."""
MOST_STACK_S = 1e9
"""Longest time of a stack that is believed, in s: longer than any call."""


Plain = str | int | float


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
    """Return the finding ``code`` of these arguments."""
    return Finding(code, arguments)


def stated(text: str, case: str = "", metric: str = "") -> Reason:
    """Return the reason that is given in words alone."""
    return Reason(IN_WORDS, case, metric, {"text": text})


def because(code: str, why: Finding) -> Finding:
    """Return the finding ``code``, with another, ``why``, and its arguments as the reason."""
    return Finding(code, {**why.arguments, "why": why.code})


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the sides that one instrument found."""

    instrument: str
    code: str
    arguments: Mapping[str, Plain] = field(default_factory=dict)
    seconds: float = 0.0
    bytes: float = 0.0
    metric: str = ""
    file: str = ""
    line: int = 0
    hunk: bool = False
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Hint:
    """A frequent mistake that a profile of head shows. It is no reason for any verdict."""

    instrument: str
    code: str
    arguments: Mapping[str, Plain] = field(default_factory=dict)
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of functions, and its share of a call's time on each side, in s."""

    frames: tuple[str, ...]
    base: float
    head: float


@dataclass(frozen=True, slots=True)
class Why:
    """The differences that explain why one case moved."""

    case: str
    differences: tuple[Difference, ...] = ()
    hints: tuple[Hint, ...] = ()
    untold: Mapping[str, str] = field(default_factory=dict)
    stacks: tuple[Stack, ...] = ()
