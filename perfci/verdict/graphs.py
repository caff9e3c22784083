"""No graph at all is a failure to compile: neither zero graph breaks nor fewer graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from perfci.record.report import Comparison, Estimate
from perfci.record.worker import WorkerOutput
from perfci.verdict.exact import exact_value

COUNTS = ("graph_breaks", "graphs")
"""The metrics whose numbers don't tell: without a graph there is no break, and 0 is the fewest."""


def lost_or_gained(
    base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]
) -> Literal["lost", "gained", ""]:
    """Say whether one side alone has graphs, both being compiled; of its workers the upper median.

    A side that isn't compiled, or whose torch doesn't count, has none and lacks none.
    """
    before, after = _graphs(base), _graphs(head)
    if before is None or after is None or bool(before) == bool(after):
        return ""
    return "lost" if before else "gained"


def without_numbers(
    empty: Comparison,
    change: Literal["lost", "gained"],
    base: Estimate | None,
    head: Estimate | None,
) -> Comparison:
    """Return the row of one of ``COUNTS``: the sides as they are, and a status in spite of them."""
    side = "head" if change == "lost" else "base"
    return replace(
        empty,
        method="exact",
        status="regressed" if change == "lost" else "improved",
        base=base,
        head=head,
        warnings=(
            *empty.warnings,
            f"torch.compile made no graph on {side}: all of it runs in eager",
        ),
    )


def _graphs(outputs: Sequence[WorkerOutput]) -> float | None:
    counts = [output.values["graphs"] for output in outputs if "graphs" in output.values]
    return exact_value(counts) if counts else None
