"""Pure: what a machine sees, from identical sides: spreads, detectable changes, false alarms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.calibrate import FalseAlarms, Helped, SeenMetric, SettingTrial
from perfci.calibrate.promise import PROMISED_METRIC, SessionRounds, detectable, rounds_needed
from perfci.metrics import METRICS
from perfci.model.case import Case
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.stats.spread import Modes, Spread, spread_ratio, two_modes, upper_bound
from perfci.stats.t_tests import Resolution, variance
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.caveats import rounds_to_believe
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
_NOMINAL = 0.05
"""Share of comparisons of identical sides that should have a p below it."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """One case measured against itself. The two workers of the same round number are a pair."""

    case: Case
    base: tuple[WorkerOutput, ...]
    head: tuple[WorkerOutput, ...]

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
        modes = two_modes(self.values(metric))
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

    def values(self, metric: str) -> tuple[float, ...]:
        """Return the value of every worker, both sides alike: they ran the same code."""
        outputs = (*self.base, *self.head)
        return tuple(output.values[metric] for output in outputs if metric in output.values)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Result of measuring identical sides: a row for each metric, and their false alarms."""

    seen: tuple[SeenMetric, ...]
    false_alarms: FalseAlarms
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
    adjusted = {
        (row.case, row.metric): row
        for row in adjust(compared, policy)
        if row.method == "paired_t"
        and row.metric not in _NOT_CALIBRATED
        and (row.gate == "fail" or row.metric in _TAILS)
    }
    by_case = {pairs.case.id: pairs for pairs in measured}
    seen = tuple(
        _seen(by_case[case], row, policy, rounds, family) for (case, _), row in adjusted.items()
    )
    gating = [row for row in adjusted.values() if row.gate == "fail"]
    return Calibrated(seen, false_alarms(gating, policy.alpha), family)


def false_alarms(rows: Sequence[Comparison], alpha: float) -> FalseAlarms:
    """Count how often identical sides were called different, and how often chance alone does that.

    ``chance`` is binomial, as if the comparisons were independent. The metrics of one case aren't
    quite independent, so ``chance`` is a hint and not a test.
    """
    from scipy import special

    tested = [row.p for row in rows if row.p is not None]
    low = sum(p < _NOMINAL for p in tested)
    return FalseAlarms(
        comparisons=len(tested),
        alarms=sum(_alarmed(row, alpha) for row in rows),
        expected=alpha,
        below_5_percent=low,
        chance=float(special.bdtrc(low - 1, len(tested), _NOMINAL)) if low else 1.0,
    )


def judge_setting(
    setting: str, with_it: Mapping[str, Pairs], without: Iterable[Pairs]
) -> SettingTrial:
    """Return how many times larger the spread of median latency is without ``setting``.

    ``helps`` and ``hurts`` need an interval that doesn't contain 1. Otherwise it is ``unknown``.
    """
    compared = []
    for pairs in without:
        on, off = with_it.get(pairs.case.id), pairs.spread(PROMISED_METRIC)
        spread = on.spread(PROMISED_METRIC) if on else None
        if spread is not None and off is not None and off.df >= _FEWEST_PAIRS - 1:
            compared.append((pairs.case.id, off, spread))
    pooled = spread_ratio([(off, on) for _, off, on in compared])
    if pooled is None:
        return SettingTrial(setting, "left_out", reason="too few pairs in the time there was")
    helped: Helped = "helps" if pooled.lo > 1.0 else "hurts" if pooled.hi < 1.0 else "unknown"
    return SettingTrial(
        setting=setting,
        helped=helped,
        ratio=pooled.ratio,
        lo=pooled.lo,
        hi=pooled.hi,
        cases=tuple(case for case, _, _ in compared),
        pairs=sum(off.df + 1 for _, off, _ in compared),
    )


def _seen(
    pairs: Pairs, row: Comparison, policy: Policy, rounds: SessionRounds, family: int
) -> SeenMetric:
    alpha = policy.alpha / max(1, family)
    metric = METRICS.get(row.metric)
    spread = pairs.spread(row.metric)
    seen = SeenMetric(
        case=pairs.case.id,
        benchmark=pairs.case.benchmark,
        metric=row.metric,
        unit=row.unit,
        gate=row.gate,
        threshold=row.threshold,
        pairs=len(pairs.log_ratios(row.metric)),
        worker_spread=_worker_spread(pairs.values(row.metric)),
        p=row.p,
        false_alarm=_alarmed(row, policy.alpha),
        modes=pairs.modes(row.metric),
    )
    if metric is None or metric.absolute:
        return replace(seen, warnings=("compared by differences: no share can be promised",))
    if spread is None or spread.df < _FEWEST_PAIRS - 1:
        return replace(seen, warnings=(f"fewer than {_FEWEST_PAIRS} pairs: spread unknown",))
    if spread.value == 0.0:
        return replace(seen, spread=0.0, warnings=("the same in every pair: nothing to test",))
    high = upper_bound(spread)
    if seen.modes is not None:
        why = "two modes: what a t test would see in them is nothing to promise"
        return replace(seen, spread=spread.value, spread_hi=high, warnings=(why,))
    prolongs = row.gate == "fail" and policy.undecided(row.metric) == "inconclusive"

    believed = rounds_to_believe(family, policy.alpha)

    def sees(value: float) -> float:
        return detectable(value, row.threshold, rounds, alpha, prolongs=prolongs)

    reached = rounds.most if prolongs else rounds.least
    enough = rounds_needed(spread.value, row.threshold, alpha) if row.threshold > 0.0 else None

    def needs(change: float) -> int | None:
        count = rounds_needed(spread.value, change, alpha)
        return None if count is None else max(count, believed)

    return replace(
        seen,
        spread=spread.value,
        spread_hi=high,
        detectable=sees(spread.value),
        promised=sees(high),
        rounds_1=needs(0.01),
        rounds_2=needs(0.02),
        rounds_5=needs(0.05),
        sees_threshold=enough is not None and enough <= reached,
    )


def _alarmed(row: Comparison, alpha: float) -> bool:
    significant = row.p_adjusted is not None and row.p_adjusted < alpha
    return significant or row.status in {"regressed", "improved"}


def _worker_spread(values: Sequence[float]) -> float | None:
    if len(values) < 2 or min(values) <= 0.0:
        return None
    return math.sqrt(variance([math.log(value) for value in values], _RESOLUTION))
