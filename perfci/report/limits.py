"""The limits of a report: the one table that reading and writing both keep to.

A report can come from a job that ran untrusted code. Reading refuses what exceeds the table.
perfci's own reports are cut to fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_type_hints

from perfci.model.report import MOST_VALUES
from perfci.model.worker import MOST_FIRST_CALLS

MOST_BYTES = 16 << 20
LARGEST_WHOLE = (1 << 63) - 1
LONGEST_NAME = 300

Keep = Literal["start", "end", "name"]


@dataclass(frozen=True, slots=True)
class Limit:
    """The most characters of a text, and the most entries of a list or mapping.

    ``keep`` is the part that stays of a text that is cut. A ``name`` also stays unlike other names.
    """

    text: int = 300
    most: int = 1_000
    keep: Keep = "start"


_NAME = Limit(LONGEST_NAME, keep="name")
_METRIC = Limit(100, keep="name")
_PATH = Limit(4_096, keep="end")

LIMITS: Mapping[str, Limit] = MappingProxyType(
    {
        "Report.results": Limit(most=20_000),
        "Report.failures": Limit(most=1_000),
        "Report.explanations": Limit(most=1_000),
        "Report.notes": Limit(2_000, most=1_000),
        "Report.skipped": Limit(1_000, most=20_000),
        "Report.not_measured": Limit(1_000, most=1_000),
        "Report.durations": Limit(most=20_000),
        "Report.definitions": Limit(most=20_000),
        "Report.past": Limit(most=1_000),
        "Report.modes": Limit(most=20_000),
        "ModeMatrix.case": _NAME,
        "ModeMatrix.memory": _METRIC,
        "ModeRow.case": _NAME,
        "Report.shapes": Limit(most=20_000),
        "ShapeTable.case": _NAME,
        "ShapeRow.shape": _METRIC,
        "ShapeRow.guard": Limit(800),
        "Report.same_code": Limit(300, most=20_000, keep="name"),
        "Report.injected": Limit(most=20),
        "Verdict.reasons": Limit(5_000, most=1_000),
        "Reason.case": _NAME,
        "Reason.metric": _METRIC,
        "Reason.arguments": Limit(800, most=20),
        "Comparison.case": _NAME,
        "Comparison.metric": _METRIC,
        "Comparison.unit": Limit(50),
        "Comparison.warnings": Limit(1_000, most=50),
        "Comparison.doubt": Limit(1_000),
        "Comparison.replay": Limit(2_000),
        "Comparison.outliers": Limit(most=MOST_VALUES),
        "Estimate.values": Limit(most=MOST_VALUES),
        "Estimate.quantiles": Limit(most=9),
        "Estimate.first_calls": Limit(most=MOST_FIRST_CALLS),
        "Accepted.because": Limit(800),
        "Finding.arguments": Limit(800, most=20),
        "Failure.case": _NAME,
        "Failure.message": Limit(4_000),
        "Failure.log_tail": Limit(20_000, keep="end"),
        "Report.why": Limit(most=1_000),
        "Why.case": _NAME,
        "Why.differences": Limit(most=100),
        "Why.hints": Limit(most=50),
        "Why.untold": Limit(1_000, most=50),
        "Why.stacks": Limit(most=150),
        "Stack.frames": Limit(400, most=70),
        "Difference.arguments": Limit(800, most=20),
        "Difference.text": Limit(4_000),
        "Difference.file": _PATH,
        "Hint.arguments": Limit(800, most=20),
        "Hint.text": Limit(4_000),
        "Hint.file": _PATH,
        "Explanation.case": _NAME,
        "Explanation.metric": _METRIC,
        "Explanation.text": Limit(4_000),
        "Explanation.file": _PATH,
        "Past.case": _NAME,
        "Past.metric": _METRIC,
        "Past.values": Limit(most=100),
        "Definition.benchmark": _NAME,
        "Definition.file": _PATH,
        "Side.python": _PATH,
        "SideRan.folders": Limit(4_096, keep="end"),
        "SideRan.outside": Limit(4_096, keep="end"),
        "SideRan.cases": Limit(most=20_000),
        "Compiled.file": _PATH,
        "Environment.facts": Limit(1_000, most=200),
    }
)
"""By ``Class.field``. A field that isn't here, as a new one, has ``Limit()``."""


@cache
def fields_of(kind: type) -> Mapping[str, tuple[Any, Limit]]:
    """Return the types and limits of a record's fields."""
    return {
        name: (hint, LIMITS.get(f"{kind.__name__}.{name}", Limit()))
        for name, hint in get_type_hints(kind).items()
    }
