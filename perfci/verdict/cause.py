"""What a reader should blame for a row: the code, noise, the machine, or the method. Pure."""

from __future__ import annotations

from collections.abc import Container
from typing import Literal

from perfci.model.finding import Finding
from perfci.model.report import Comparison

Cause = Literal["code", "noise", "machine", "method", ""]
"""``code``: what differs between the sides. ``noise``: variance between processes. ``machine``:
something else ran, or the machine throttled. ``method``: how it was measured (too few rounds, a
value too coarse, sides that can't be compared). Empty where there is nothing to blame."""

_OF_THE_METHOD = frozenset(
    {
        # too little was measured
        "few-rounds", "few-ancestors", "few-workers", "too-few", "too-few-ancestors",
        "one-ancestor", "no-pairs", "one-pair", "no-values-on-one-side",
        "one-value-on-one-side", "one-session",
        "one-session-of-spread", "nothing-measured", "no-round", "budget-ended", "interrupted",
        "session-ended", "not-reached", "measure-together",
        # the values are too coarse for a test, or no numbers
        "same-values", "no-spread", "no-spread-on-one-side", "not-finite", "out-of-range",
        "below-floor", "no-ratio", "no-ratio-of-mean",
        # the sides did not measure the same
        "base-only", "no-graph", "left-out", "unreported", "not-reported", "absent", "no-baseline",
        "other-environment", "source-changed",
    }
)  # fmt: skip


def cause_of(row: Comparison, same_code: Container[str]) -> Cause:
    """Return what to blame for ``row``; of the cases in ``same_code`` nothing that ran differs."""
    match row.status:
        case "new" | "removed" | "unchanged":
            return ""
        case "not_comparable":
            return "method"
        case "failed":
            return "code"
        case "regressed" | "improved":
            return "machine" if row.case in same_code else "code"
        case "inconclusive":
            if any(_reason(one) in _OF_THE_METHOD for one in row.findings[-1:]):
                return "method"
            return "machine" if row.disturbance or row.case in same_code else "noise"


def _reason(finding: Finding) -> str:
    """Return the finding's code; of a change that is not believed, the code of why it is not."""
    looks = finding.code.startswith("looks-")
    return str(finding.arguments["why"]) if looks else finding.code
