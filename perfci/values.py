"""Values as people write them in a configuration: types with their bounds, and how they are read.

A record's field becomes a key of the configuration by such a type and ``about``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any

from msgspec import Meta

from perfci.units import parse_share

NO_ZERO = r"(?![\s\S]*\x00)"
TEXT = rf"^{NO_ZERO}[\s\S]*\S"


def written(expected: str = "", read: Callable[[Any], Any] | None = None, **in_schema: Any) -> Meta:
    """Return how a value is written where its type doesn't show it.

    ``expected`` is for error messages. ``read`` converts the file's value to the type, and its
    ValueError says what it expected. ``in_schema`` is added to the JSON Schema.
    """
    return Meta(extra={"expected": expected, "read": read}, extra_json_schema=in_schema or None)


def about(meaning: str, *example: Any, **bounds: Any) -> Meta:
    """Return a key's meaning, an example of its value (no switch needs one), and bounds."""
    return Meta(description=meaning, examples=list(example) or None, **bounds)


def _day(value: Any) -> str:
    """Read a TOML date, or a date as text. A date with a time is refused."""
    if type(value) is date:
        return value.isoformat()
    if not isinstance(value, str):
        raise ValueError(value)  # noqa: TRY004 (the caller takes it for a wrong value)
    return date.fromisoformat(value).isoformat()


def _limit(value: Any) -> float:
    """Read a share, or an amount as a number."""
    if isinstance(value, str):
        return parse_share(value)
    if isinstance(value, bool) or not 0 <= value <= sys.float_info.max:
        raise ValueError("an amount, at least 0")
    return float(value)


NUMBER_OR_TEXT = {"type": ["number", "string"]}
_PERCENTAGE = {"pattern": r"^\s*([0-9.]+\s*%|0?\.[0-9]+)\s*$"}

Text = Annotated[str, Meta(pattern=TEXT), written('a text, such as "benchmarks"')]
Share = Annotated[
    float,
    Meta(ge=0),
    written(read=parse_share, **NUMBER_OR_TEXT, **_PERCENTAGE, exclusiveMaximum=1),
]
Chance = Annotated[
    float,
    Meta(gt=0, le=0.5),
    written("a number above zero, at most 0.5", parse_share, **NUMBER_OR_TEXT, **_PERCENTAGE),
]
Threshold = Annotated[
    int | float | str,
    written(
        'a share such as "5%" or 0.05, or an amount', **NUMBER_OR_TEXT, **_PERCENTAGE, minimum=0
    ),
]
"""A share or an amount, which depends on the metric."""
UP_TO = written("", _limit, **NUMBER_OR_TEXT, **_PERCENTAGE, minimum=0)
"""A ``Threshold`` that is read as a number."""
Day = Annotated[
    str,
    written("a day, such as 2026-12-31", _day, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
]
