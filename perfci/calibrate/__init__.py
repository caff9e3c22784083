"""Pure: a machine's resolution, from sides that run the same code.

Here is the result of ``perfci calibrate``, schema ``perfci.calibration/1``. Field names are fixed:
scripts read them. Shares are of base (0.02: two per cent), times in s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perfci.model.case import Failure, Gate
from perfci.model.run import Environment, Side
from perfci.stats.spread import Modes
from perfci.version import CALIBRATION_SCHEMA

Helped = Literal["helps", "hurts", "unknown", "left_out"]
Kept = Literal["kept", "not_kept", "not_checked"]


@dataclass(frozen=True, slots=True)
class SeenMetric:
    """Resolution of one metric of one case on this machine.

    ``spread`` is the standard deviation of a pair's log ratio, and ``spread_hi`` its upper 95 %
    bound. ``worker_spread`` is the standard deviation of a single worker's logarithm.
    ``detectable`` is the smallest change that a session with the configured rounds calls
    significant in 95 % of runs, as one of all the report's comparisons. ``promised`` is the same
    with ``spread_hi`` as the spread. ``rounds_1``, ``_2`` and ``_5`` are the rounds that changes of
    1, 2 and 5 % need, None if out of reach. ``sees_threshold`` says whether the session's rounds
    are enough for the threshold.
    """

    case: str
    benchmark: str
    metric: str
    unit: str
    gate: Gate
    threshold: float
    pairs: int
    spread: float | None = None
    spread_hi: float | None = None
    worker_spread: float | None = None
    detectable: float | None = None
    promised: float | None = None
    rounds_1: int | None = None
    rounds_2: int | None = None
    rounds_5: int | None = None
    sees_threshold: bool | None = None
    p: float | None = None
    false_alarm: bool = False
    modes: Modes | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """Number of times identical sides were called different, and the number expected by chance.

    ``alarms`` are significant after correction, ``expected`` is the chance of any in a report.
    ``below_5_percent`` counts the p below 0.05 without correction: 5 % of ``comparisons`` are
    expected, and ``chance`` is the probability of as many or more.
    """

    comparisons: int
    alarms: int
    expected: float
    below_5_percent: int
    chance: float


@dataclass(frozen=True, slots=True)
class SettingTrial:
    """One quiet setting switched off: spread without it ÷ spread with it, with its 95 % interval.

    The ratio is pooled over ``cases``. ``pairs`` were measured without the setting. ``reason`` says
    why a setting was ``left_out``.
    """

    setting: str
    helped: Helped
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    cases: tuple[str, ...] = ()
    pairs: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PromiseCase:
    """One case with the slow-down in head.

    It isn't ``counted`` if the promise needs more rounds, or if head got slower than asked.
    """

    case: str
    rounds: int
    needed: int
    counted: bool
    found: bool
    ratio: float | None = None
    ratio_lo: float | None = None
    ratio_hi: float | None = None


@dataclass(frozen=True, slots=True)
class Promise:
    """The calibration's own test: ``promised`` was injected and should have been found."""

    status: Kept
    metric: str
    promised: float | None = None
    injected: float | None = None
    found: int = 0
    counted: int = 0
    cases: tuple[PromiseCase, ...] = ()
    left_out: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One key of the configuration to change, and why. ``before`` has None for a key not set.

    ``where`` names the place of a value that isn't in the configuration: a benchmark's threshold.
    """

    path: tuple[str, ...]
    value: float | int
    before: float | int | None
    reason: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class DefaultSession:
    """The session that the promises are made for: rounds, budget, alpha, comparisons."""

    rounds: int
    max_rounds: int
    budget_s: float
    alpha: float
    comparisons: int


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """Time of the calibration's parts, in s."""

    wall_s: float
    budget_s: float
    same_s: float
    settings_s: float
    promise_s: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """One calibration, ready to be rendered. ``untrusted`` says why it can't be relied on.

    ``configuration`` is the file that the suggestions belong into.
    """

    perfci_version: str
    created_at: str
    side: Side
    environment: Environment
    session: DefaultSession
    spent: TimeSpent
    seen: tuple[SeenMetric, ...]
    false_alarms: FalseAlarms
    settings: tuple[SettingTrial, ...]
    promise: Promise
    suggestions: tuple[Suggestion, ...]
    configuration: str = ""
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    schema: str = CALIBRATION_SCHEMA
