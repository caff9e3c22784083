"""What a metric is: name, unit, direction, kind, default threshold and gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["lower", "higher"]
Kind = Literal["sampled", "per_worker", "exact"]
Gate = Literal["fail", "warn", "info"]
Undecided = Literal["inconclusive", "pass"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric and its default policy.

    ``threshold`` is a share of base (0.05: five per cent), or an amount in ``unit`` where
    ``absolute`` is set (metrics whose base may be zero); then never less than ``share`` of base.
    ``floor``: smaller values count as this much. ``undecided`` says what an inconclusive gating
    comparison makes of the verdict. ``rounds_setting`` is the setting that gives it more rounds.
    A metric of the kind ``exact`` is tested, too, where the workers of a side disagree. ``always``:
    every case that is measured has it, where the machine can tell it at all.
    """

    name: str
    unit: str
    kind: Kind
    threshold: float
    gate: Gate
    direction: Direction = "lower"
    absolute: bool = False
    share: float = 0.0
    floor: float | None = None
    undecided: Undecided = "pass"
    rounds_setting: str = "rounds"
    always: bool = False
