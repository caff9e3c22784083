"""Pure: a machine's resolution, from sides that run the same code.

Here is the result of ``perfci calibrate``, schema ``perfci.calibration/1``. Field names are fixed:
scripts read them. Shares are of base (0.02: two per cent), times in s.

A session measures at least its minimum of rounds, and more only for a case that is undecided. So a
change is found in two ways: the minimum of rounds finds it, or it is too large to be taken for no
change and the maximum of rounds finds it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfci.metrics import METRICS
from perfci.model.case import Failure
from perfci.model.measuring import DECIDING_ROUNDS, WorkerOutput
from perfci.model.report import Comparison
from perfci.model.run import Environment, Side
from perfci.stats.spread import POWER, detectable_difference
from perfci.stats.t_tests import Resolution, variance
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from perfci.verdict.shards import scaled_family
from perfci.version import CALIBRATION_SCHEMA

_NOT_CALIBRATED = frozenset({"compile_time", "compile_time_cached"})
"""Metrics of which each value costs a compile: there are too few values to know a spread."""
_FEWEST_PAIRS = 3
"""Least number of pairs from which a spread is known."""
_RESOLUTION = Resolution(1e-12)
"""A spread of logarithms below this is rounding."""
_LARGEST_EXPONENT = 690.0
"""Largest exponent that is used. From about 709 on, its exponential isn't a float any more."""


@dataclass(frozen=True, slots=True)
class SeenMetric:
    """Resolution of one gating metric of one case on this machine.

    ``spread`` is the standard deviation of a pair's log ratio. ``detectable`` is the smallest
    change that a session with the configured rounds calls significant in 95 % of runs, as one of
    all the report's comparisons. ``blind``: a change as large as the threshold is too small to be
    seen. ``warning`` says why a number is missing.
    """

    case: str
    metric: str
    threshold: float
    pairs: int
    spread: float | None = None
    detectable: float | None = None
    blind: bool = False
    false_alarm: bool = False
    warning: str = ""


@dataclass(frozen=True, slots=True)
class SessionRounds:
    """The rounds of a session: at least, and at most if a case stays undecided."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """One calibration, ready to be rendered.

    ``session`` are the rounds of a usual session, and ``comparisons`` its gating comparisons.
    ``disturbance`` names what disturbed most of the bursts. ``untrusted`` says why the calibration
    can't be relied on.
    """

    perfci_version: str
    created_at: str
    side: Side
    environment: Environment
    session: SessionRounds
    comparisons: int
    wall_s: float
    rounds: int
    seen: tuple[SeenMetric, ...]
    disturbance: str = ""
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    schema: str = CALIBRATION_SCHEMA


def calibrate(
    compared: Sequence[Comparison], policy: Policy, rounds: SessionRounds, scale: float = 1.0
) -> tuple[tuple[SeenMetric, ...], int]:
    """Return what the machine sees of each case's gating metrics, and the size of the family.

    ``compared`` are rows of cases that were measured against themselves, not adjusted yet. A change
    is detectable if p stays below alpha ÷ the number of the report's gating comparisons: that is
    what Holm asks of the first of them. ``scale`` is the number of the report's cases ÷ the number
    measured.
    """
    gates = sum(row.gate == "fail" and row.method == "paired_t" for row in compared)
    family = scaled_family(gates, scale)
    seen = tuple(
        _seen(row, policy, rounds, family)
        for row in adjust(compared, policy)
        if row.method == "paired_t" and row.gate == "fail" and row.metric not in _NOT_CALIBRATED
    )
    return seen, family


def most_disturbing(outputs: Iterable[WorkerOutput]) -> str:
    """Return what disturbed most bursts and how many of all, or "" if nothing disturbed any."""
    disturbed: Counter[str] = Counter()
    measured = 0
    for output in outputs:
        measured += output.bursts_measured
        if output.disturbance:
            disturbed[output.disturbance] += output.bursts_set_aside + output.bursts_disturbed
    if not disturbed:
        return ""
    ((reason, bursts),) = disturbed.most_common(1)
    return f"{reason}, in {bursts:,} of {measured:,} bursts"


def detectable(
    spread: float, threshold: float, rounds: SessionRounds, alpha: float, *, prolongs: bool
) -> float:
    """Return the smallest change (a share of base) that a session detects in 95 % of runs.

    Either the least rounds detect it, or the most rounds do in 98 % of runs. For the latter the
    change must lie beyond the threshold by one standard error of the least rounds: then chance
    makes a session stop early for "no change" in under 2 % of runs. ``prolongs`` says whether a
    session adds rounds at all while it is undecided about this metric.
    """
    fewest = max(rounds.least, DECIDING_ROUNDS)
    in_fewest = detectable_in(spread, fewest, alpha)
    if not prolongs or rounds.most <= fewest:
        return in_fewest
    in_most = detectable_in(spread, rounds.most, alpha, 1.0 - (1.0 - POWER) * 0.4)
    beyond = math.log1p(threshold) + spread / math.sqrt(fewest)
    return min(in_fewest, max(in_most, math.expm1(min(beyond, _LARGEST_EXPONENT))))


def detectable_in(spread: float, rounds: int, alpha: float, power: float = POWER) -> float:
    """Return the smallest change that ``rounds`` rounds detect with this ``power``."""
    difference = detectable_difference(spread / math.sqrt(rounds), rounds - 1, alpha, power)
    return math.expm1(min(difference, _LARGEST_EXPONENT))


def _log_ratios(row: Comparison) -> list[float]:
    """Return log(head/base) of each pair whose values are above zero."""
    pairs = zip(row.base.values, row.head.values, strict=True) if row.base and row.head else ()
    return [math.log(head) - math.log(base) for base, head in pairs if base > 0.0 and head > 0.0]


def _seen(row: Comparison, policy: Policy, rounds: SessionRounds, family: int) -> SeenMetric:
    metric = METRICS.get(row.metric)
    ratios = _log_ratios(row)
    significant = row.p_adjusted is not None and row.p_adjusted < policy.alpha
    seen = SeenMetric(
        case=row.case,
        metric=row.metric,
        threshold=row.threshold,
        pairs=len(ratios),
        false_alarm=significant or row.status in {"regressed", "improved"},
    )
    if metric is None or metric.absolute:
        return replace(seen, warning="compared by differences, not by shares")
    if len(ratios) < _FEWEST_PAIRS:
        return replace(seen, warning=f"fewer than {_FEWEST_PAIRS} pairs: spread unknown")
    spread = math.sqrt(variance(ratios, _RESOLUTION))
    seen = replace(seen, spread=spread)
    if spread == 0.0:
        return replace(seen, warning="the same in every pair: nothing to test")
    alpha = policy.alpha / max(1, family)
    prolongs = policy.undecided(row.metric) == "inconclusive"
    smallest = detectable(spread, row.threshold, rounds, alpha, prolongs=prolongs)
    reached = max(DECIDING_ROUNDS, rounds.most if prolongs else rounds.least)
    at_most = detectable_in(spread, reached, alpha)
    return replace(seen, detectable=smallest, blind=at_most > row.threshold)
