"""Builders of what workers send back, for the tests of verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from perfci.metrics import METRICS
from perfci.model.case import Case, Failure, Gate, Metric, Undecided
from perfci.model.measuring import WorkerOutput

STEADY = (1.000, 1.010, 0.990, 1.005, 0.995, 1.000)
"""Six workers' luck, the same for both sides of a round."""
OWN = (0.001, -0.002, 0.002, 0.000, -0.001, 0.001)
"""What one side of a round has of its own."""


def case(name: str = "encoder[batch=1]", **changes: Any) -> Case:
    given = {"benchmark": "encoder", "axes": {}, "file": "bench_a.py", "line": 3}
    return Case(id=name, source_hash="s", **{**given, **changes})


def held_to(
    name: str, threshold: float, gate: Gate, undecided: Undecided = "pass"
) -> dict[str, Metric]:
    """Return a policy's ``metrics``: one metric with another policy than its own."""
    return {name: replace(METRICS[name], threshold=threshold, gate=gate, undecided=undecided)}


def worker(side: str, number: int, values: dict[str, float], **more: Any) -> WorkerOutput:
    given = {"case": "encoder[batch=1]", "samples": 100, **more}
    return WorkerOutput(side=side, round=number, values=values, **given)


def side(name: str, metric: str, values: Sequence[float]) -> tuple[WorkerOutput, ...]:
    return tuple(worker(name, number, {metric: v}) for number, v in enumerate(values, start=1))


def both(
    metric: str, ratio: float, *, noise: float = 1.0, scale: float = 0.01
) -> tuple[tuple[WorkerOutput, ...], tuple[WorkerOutput, ...]]:
    """Two sides measured together whose head is ``ratio`` times base, and a little noise."""
    base = [scale * luck for luck in STEADY]
    head = [
        scale * luck * ratio * (1.0 + noise * own) for luck, own in zip(STEADY, OWN, strict=True)
    ]
    return side("base", metric, base), side("head", metric, head)


def failure(name: str, which: str, message: str = "boom") -> Failure:
    return Failure(case=name, side=which, stage="setup", kind="RuntimeError", message=message)
