"""How much a report may hold: the one table that reading and writing both keep to.

A report can come from a job that ran a stranger's code. What no measurement gives in such an
amount is refused; perfci's own reports are cut to fit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from types import GenericAlias, MappingProxyType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from perfci.model.report import MOST_VALUES, ModeMatrix, ShapeTable
from perfci.model.worker import MOST_FIRST_CALLS

MOST_BYTES = 16 << 20
LARGEST_WHOLE = (1 << 63) - 1
LONGEST_NAME = 300

Keep = Literal["start", "end", "name"]


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """The most characters of a text, and the most entries of a list or mapping.

    ``keep`` is what stays of a text that is cut; a ``name`` also stays distinct from other names.
    """

    text: int = 300
    most: int = 1_000
    keep: Keep = "start"


_OTHERWISE = Limit()
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
"""By ``Class.field``. A field that isn't here has ``Limit()``, a new one too."""


_BESIDE: Mapping[str, Mapping[str, Any]] = {
    "Report": {"modes": tuple[ModeMatrix, ...], "shapes": tuple[ShapeTable, ...]},
    "Comparison": {"warnings": tuple[str, ...], "doubt": str, "cause": str, "replay": str},
    "Verdict": {"reasons": tuple[str, ...]},
    "Difference": {"text": str},
    "Hint": {"text": str},
}
"""What a file has beside a record's fields, all made of these: words, what to blame, tables."""


@cache
def fields_of(kind: type) -> Mapping[str, tuple[Any, Limit]]:
    """Return the types and limits of a record's fields."""
    return {
        name: (hint, LIMITS.get(f"{kind.__name__}.{name}", _OTHERWISE))
        for name, hint in get_type_hints(kind).items()
    }


@cache
def shape_of(kind: type) -> type[msgspec.Struct]:
    """Return what JSON of the record ``kind`` may be, as msgspec decodes it: within the limits.

    A field that needs no value may be absent, and so may findings: a file from before there were
    any says it in words.
    """
    needed = {
        one.name
        for one in dataclasses.fields(kind)
        if one.default is one.default_factory is dataclasses.MISSING and one.name != "findings"
    }
    types = {name: _type(hint, limit) for name, (hint, limit) in fields_of(kind).items()}
    for name, hint in _BESIDE.get(kind.__name__, {}).items():
        types[name] = _type(hint, LIMITS.get(f"{kind.__name__}.{name}", _OTHERWISE))
    needed.add("reasons")
    return msgspec.defstruct(
        kind.__name__,
        [
            (name, of) if name in needed else (name, Union[of, msgspec.UnsetType], msgspec.UNSET)  # noqa: UP007 (made of values)
            for name, of in types.items()
        ],
        namespace={"__doc__": kind.__doc__},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _type(hint: Any, limit: Limit) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    bounds: dict[str, Any] = {}
    if origin is UnionType:
        hint = Union[tuple(_type(one, limit) for one in arguments)]  # noqa: UP007 (made of values)
    elif origin is tuple:
        hint = GenericAlias(tuple, (_type(arguments[0], limit), ...))
        bounds = {"max_length": limit.most}
    elif origin is Mapping:
        name = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
        hint = GenericAlias(dict, (name, _type(arguments[1], limit)))
        bounds = {"max_length": limit.most}
    elif hint is str:
        bounds = {"max_length": limit.text}
    elif hint is int:
        bounds = {"ge": -LARGEST_WHOLE, "le": LARGEST_WHOLE}
    elif dataclasses.is_dataclass(hint):
        hint = shape_of(hint)  # type: ignore[arg-type]
    return Annotated[hint, msgspec.Meta(**bounds)] if bounds else hint
