"""Suspicion: which cases of a check are measured again, both sides together."""

from __future__ import annotations

from collections.abc import Sequence

from perfci.record.report import Comparison
from perfci.verdict.margin import threshold_of, worse_by
from perfci.verdict.policy import Policy

_SHARE = 0.5


def suspects(rows: Sequence[Comparison], policy: Policy) -> tuple[str, ...]:
    """Return the cases that may have regressed: what a stored baseline can say, and no more.

    Those that regressed; those whose doubt would cost the verdict while they are worse by half
    of the threshold; and those that may stay undecided (cold start) while worse by all of it. Two
    or three sessions leave so few degrees of freedom that hardly any change is significant among
    many; the confirmation, not the suspicion, holds the error rate.
    """
    found = [row.case for row in rows if row.gate == "fail" and _is_suspect(row, policy)]
    return tuple(dict.fromkeys(found))


def _is_suspect(row: Comparison, policy: Policy) -> bool:
    if row.status == "regressed":
        return True
    change, _, _ = worse_by(row)
    if row.status != "inconclusive" or row.method != "welch_t" or change is None:
        return False
    share = _SHARE if policy.undecided(row.metric) == "inconclusive" else 1.0
    return change >= share * threshold_of(row)
