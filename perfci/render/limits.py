"""How much a report may hold: the one table that reading and writing both keep to.

A report can come from a job that ran a stranger's code. What no measurement gives in such an
amount is refused before anything is built of it; perfci's own reports are cut to fit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

MOST_BYTES = 16 << 20
LARGEST_WHOLE = (1 << 63) - 1
LONGEST_NUMBER = 32
"""Characters: the longest float that is written has 24 of them, the longest whole number 20."""
MOST_FIELDS = 100

Keep = Literal["start", "end", "name"]


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """The most characters of a text, and the most entries of a list or mapping.

    ``keep`` is what stays of a text that is cut; a ``name`` also stays apart from other names.
    """

    text: int = 300
    most: int = 1_000
    keep: Keep = "start"


_OTHERWISE = Limit()
_NAME = Limit(300, keep="name")
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
        "Finding.arguments": Limit(800, most=20),
        "Failure.case": _NAME,
        "Failure.message": Limit(4_000),
        "Failure.log_tail": Limit(20_000, keep="end"),
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
"""By ``Class.field``. A field that isn't here has ``Limit()``, a new one too."""


_WORDS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "Comparison": {"warnings": tuple[str, ...], "doubt": str},
        "Verdict": {"reasons": tuple[str, ...]},
    }
)
"""What stands in words beside a record's findings."""


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """A string of at most ``longest`` characters."""

    longest: int
    keep: Keep = "start"


@dataclasses.dataclass(frozen=True, slots=True)
class Scalar:
    """A number, a truth value or nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Many:
    """A list."""

    item: Shape
    most: int


@dataclasses.dataclass(frozen=True, slots=True)
class Named:
    """An object whose keys are names of a stranger's."""

    item: Shape
    most: int


@dataclasses.dataclass(frozen=True, slots=True)
class Fields:
    """An object whose keys are a record's fields."""

    of: Mapping[str, Shape]


Shape = Text | Scalar | Many | Named | Fields
KEY = Text(_NAME.text, _NAME.keep)


@cache
def shape_of(kind: type) -> Fields:
    """Return what JSON of the record ``kind`` looks like, with the table's limits."""
    return Fields(
        {
            name: _shape(hint, LIMITS.get(f"{kind.__name__}.{name}", _OTHERWISE))
            for name, hint in {**get_type_hints(kind), **_WORDS.get(kind.__name__, {})}.items()
        }
    )


def _shape(hint: Any, limit: Limit) -> Shape:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return _shape(next(one for one in arguments if one is not NoneType), limit)
    if origin is tuple:
        return Many(_shape(arguments[0], limit), limit.most)
    if origin is Mapping:
        return Named(_shape(arguments[1], limit), limit.most)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return shape_of(hint)
    return Text(limit.text, limit.keep) if hint is str or origin is Literal else Scalar()
