"""Pure: whether a baseline and a case may be compared at all."""

from __future__ import annotations

from perfci.record.case import Case
from perfci.record.run import Environment
from perfci.store.baseline import Baseline


def why_not_comparable(baseline: Baseline, environment: Environment, case: Case) -> str | None:
    """Return why the two can't be compared, or None where they can."""
    if baseline.environment != environment.key:
        return f"the baseline is of another environment: {baseline.environment}"
    if baseline.source_hash != case.source_hash:
        return "the benchmark's source changed; `perfci baseline update` measures it anew"
    return None
