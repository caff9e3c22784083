"""Pure: older schemas to the current one, a step at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perfci.record.version import BASELINE_SCHEMA

Step = Callable[[dict[str, Any]], dict[str, Any]]

STEPS: Mapping[int, Step] = {}
"""From each older schema number, what makes it the next one. Schema 1 is the first."""


def upgraded(
    plain: dict[str, Any], steps: Mapping[int, Step] = STEPS, current: int = BASELINE_SCHEMA
) -> dict[str, Any]:
    """Return ``plain`` in the current schema. ValueError, with the reason, where it can't be."""
    schema = plain.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError("it carries no schema number")
    if schema > current:
        raise ValueError(f"its schema is {schema} and this perfci knows {current}: update perfci")
    while schema < current:
        plain = steps[schema](plain)
        schema += 1
    return {**plain, "schema": current}
