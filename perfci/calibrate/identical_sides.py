"""Pure: what a machine sees, from identical sides: spreads, detectable changes, false alarms.

A session measures at least its minimum of rounds, and more only for a case that is undecided. So a
change is found in two ways: the minimum of rounds finds it, or it is too large to be taken for no
change and the maximum of rounds finds it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfci.calibrate import Disturbance, SeenMetric
from perfci.metrics import METRICS
from perfci.model.case import Case
from perfci.model.measuring import DECIDING_ROUNDS, WorkerOutput
from perfci.model.report import Comparison
from perfci.stats.spread import POWER, Modes, Spread, detectable_difference, two_modes
from perfci.stats.t_tests import Resolution, variance
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from perfci.verdict.sampled_comparisons import pair_values
from perfci.verdict.shards import scaled_family

_NOT_CALIBRATED = frozenset({"compile_time", "compile_time_cached"})
"""Metrics of which each value costs a compile: there are too few values to know a spread."""
_TAILS = frozenset({"latency_p95", "latency_p99"})
"""Metrics that are calibrated even if they don't gate."""
_FEWEST_PAIRS = 3
"""Least number of pairs from which a spread is known."""
_RESOLUTION = Resolution(1e-12)
"""A spread of logarithms below this is rounding."""
_LARGEST_EXPONENT = 690.0
"""Largest exponent that is used. From about 709 on, its exponential isn't a float any more."""


@dataclass(frozen=True, slots=True)
class SessionRounds:
    """The rounds of a session: at least, and at most if a case stays undecided."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """One case measured against itself. The two workers of the same round number are a pair."""

    case: Case
    base: tuple[WorkerOutput, ...]
    head: tuple[WorkerOutput, ...]

    @property
    def outputs(self) -> tuple[WorkerOutput, ...]:
        """The outputs of both sides' workers."""
        return (*self.base, *self.head)

    def log_ratios(self, metric: str) -> tuple[float, ...]:
        """Return log(head/base) of each pair that has ``metric`` above zero on both sides.

        The values of a pair are those that comparisons use: of bursts side by side.
        """
        before = {output.round: output for output in self.base if metric in output.values}
        after = {output.round: output for output in self.head if metric in output.values}
        pairs = (
            pair_values(before[number], after[number], metric)
            for number in sorted(before.keys() & after.keys())
        )
        return tuple(
            math.log(head) - math.log(base) for base, head in pairs if base > 0.0 and head > 0.0
        )

    def spread(self, metric: str) -> Spread | None:
        """Return the spread of the log ratios, or None for fewer than two pairs."""
        ratios = self.log_ratios(metric)
        if len(ratios) < 2:
            return None
        return Spread(math.sqrt(variance(ratios, _RESOLUTION)), len(ratios) - 1)

    def modes(self, metric: str) -> Modes | None:
        """Return the two modes of the workers, or None if they have only one.

        Also None if both sides of a round are always in the same mode. Then the machine changes
        with the time, and not from process to process. A pair's ratio doesn't contain that.
        """
        modes = two_modes([out.values[metric] for out in self.outputs if metric in out.values])
        if modes is None:
            return None
        border = math.sqrt(modes.low * modes.high)
        upper = [
            {
                output.round: output.values[metric] > border
                for output in side
                if metric in output.values
            }
            for side in (self.base, self.head)
        ]
        shared = all(
            upper[0][number] == upper[1][number] for number in upper[0].keys() & upper[1].keys()
        )
        return None if shared else modes


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Result of measuring identical sides: a row for each metric, and the size of the family."""

    seen: tuple[SeenMetric, ...]
    comparisons: int


def calibrate(
    measured: Sequence[Pairs], policy: Policy, rounds: SessionRounds, scale: float = 1.0
) -> Calibrated:
    """Return what the machine sees of each case's gating metrics and tails.

    A change is detectable if p stays below alpha ÷ the number of the report's gating comparisons:
    that is what Holm asks of the first of them. ``scale`` is the number of the report's cases ÷ the
    number measured.
    """
    compared = [
        row
        for pairs in measured
        for row in compare_case(pairs.case, pairs.base, pairs.head, policy, paired=True)
    ]
    gates = sum(row.gate == "fail" and row.method == "paired_t" for row in compared)
    family = scaled_family(gates, scale)
    by_case = {pairs.case.id: pairs for pairs in measured}
    seen = tuple(
        _seen(by_case[row.case], row, policy, rounds, family)
        for row in adjust(compared, policy)
        if row.method == "paired_t"
        and row.metric not in _NOT_CALIBRATED
        and (row.gate == "fail" or row.metric in _TAILS)
    )
    return Calibrated(seen, family)


def most_disturbing(outputs: Iterable[WorkerOutput]) -> Disturbance | None:
    """Return what disturbed most bursts, or None if nothing disturbed any."""
    disturbed: Counter[str] = Counter()
    measured = 0
    for output in outputs:
        measured += output.bursts_measured
        if output.disturbance:
            disturbed[output.disturbance] += output.bursts_set_aside + output.bursts_disturbed
    if not disturbed:
        return None
    ((reason, bursts),) = disturbed.most_common(1)
    return Disturbance(reason, bursts, measured)


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
    slack = 1.0 - (1.0 - POWER) * 0.4
    in_most = detectable_difference(spread / math.sqrt(rounds.most), rounds.most - 1, alpha, slack)
    beyond = math.log1p(threshold) + spread / math.sqrt(fewest)
    return min(in_fewest, math.expm1(min(max(in_most, beyond), _LARGEST_EXPONENT)))


def detectable_in(spread: float, rounds: int, alpha: float) -> float:
    """Return the smallest change that ``rounds`` rounds detect in 95 % of runs."""
    difference = detectable_difference(spread / math.sqrt(rounds), rounds - 1, alpha)
    return math.expm1(min(difference, _LARGEST_EXPONENT))


def _seen(
    pairs: Pairs, row: Comparison, policy: Policy, rounds: SessionRounds, family: int
) -> SeenMetric:
    alpha = policy.alpha / max(1, family)
    metric = METRICS.get(row.metric)
    spread = pairs.spread(row.metric)
    significant = row.p_adjusted is not None and row.p_adjusted < policy.alpha
    seen = SeenMetric(
        case=pairs.case.id,
        metric=row.metric,
        unit=row.unit,
        gate=row.gate,
        threshold=row.threshold,
        pairs=len(pairs.log_ratios(row.metric)),
        p=row.p,
        false_alarm=significant or row.status in {"regressed", "improved"},
        modes=pairs.modes(row.metric),
    )
    if metric is None or metric.absolute:
        return replace(seen, warning="compared by differences, not by shares")
    if spread is None or spread.df < _FEWEST_PAIRS - 1:
        return replace(seen, warning=f"fewer than {_FEWEST_PAIRS} pairs: spread unknown")
    seen = replace(seen, spread=spread.value)
    if spread.value == 0.0:
        return replace(seen, warning="the same in every pair: nothing to test")
    if seen.modes is not None:
        return replace(seen, warning="two modes: a t test can't judge what lies between them")
    prolongs = row.gate == "fail" and policy.undecided(row.metric) == "inconclusive"
    reached = max(DECIDING_ROUNDS, rounds.most if prolongs else rounds.least)
    sees = row.threshold > 0.0 and detectable_in(spread.value, reached, alpha) <= row.threshold
    smallest = detectable(spread.value, row.threshold, rounds, alpha, prolongs=prolongs)
    return replace(seen, detectable=smallest, sees_threshold=sees)
