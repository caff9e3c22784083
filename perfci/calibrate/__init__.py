"""Pure: a machine's resolution, from sides that run the same code.

Here is the result of ``perfci calibrate``, schema ``perfci.calibration/1``. Field names are fixed:
scripts read them. Shares are of base (0.02: two per cent), times in s.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfci.model.case import Failure, Gate
from perfci.model.run import Environment, Side
from perfci.stats.spread import Modes
from perfci.version import CALIBRATION_SCHEMA


@dataclass(frozen=True, slots=True)
class SeenMetric:
    """Resolution of one metric of one case on this machine.

    ``spread`` is the standard deviation of a pair's log ratio. ``detectable`` is the smallest
    change that a session with the configured rounds calls significant in 95 % of runs, as one of
    all the report's comparisons. ``sees_threshold`` says whether the session's rounds are enough
    for a change as large as the threshold. ``warning`` says why a number is missing.
    """

    case: str
    metric: str
    unit: str
    gate: Gate
    threshold: float
    pairs: int
    spread: float | None = None
    detectable: float | None = None
    sees_threshold: bool | None = None
    p: float | None = None
    false_alarm: bool = False
    modes: Modes | None = None
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """The commonest disturbance: ``reason`` hit ``bursts`` of all the bursts ``measured``."""

    reason: str
    bursts: int
    measured: int


@dataclass(frozen=True, slots=True)
class DefaultSession:
    """The session that a change would be detected in: rounds, budget, alpha, comparisons."""

    rounds: int
    max_rounds: int
    budget_s: float
    alpha: float
    comparisons: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """One calibration, ready to be rendered. ``untrusted`` says why it can't be relied on."""

    perfci_version: str
    created_at: str
    side: Side
    environment: Environment
    session: DefaultSession
    wall_s: float
    budget_s: float
    rounds: int
    seen: tuple[SeenMetric, ...]
    disturbance: Disturbance | None = None
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    schema: str = CALIBRATION_SCHEMA
