"""The comparison of a sampled metric: a test of both sides' workers, in pairs or unpaired."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfci.finding import DONE_ONCE, Evidence, Finding, finding
from perfci.model import inherited
from perfci.model.case import Metric
from perfci.model.measuring import DECIDING_ROUNDS, WorkerOutput
from perfci.model.report import MOST_VALUES, Comparison, Estimate
from perfci.stats.evidence import paired_evidence, summarise, unpaired_evidence
from perfci.stats.quantile import median, upper_median
from perfci.stats.t_tests import DayShift
from perfci.verdict.caveats import (
    at_one_speed,
    caveat_of_rounds,
    caveat_of_servers,
    caveat_of_workers,
    speeds_finding,
    speeds_of,
)
from perfci.verdict.policy import Policy, standard_error

_IDLE_S = 3e-7
"""A shorter call is mostly the time of the clock and of calling any function (about 1e-7 s)."""
_CALL = "latency_p50"
_ONCE_RATIO, _LEAST_ONCE_S = 10_000.0, 0.001
"""An early call that takes this many times a warm one, and at least this long in s, does work that
a warm one doesn't."""
_BEFORE_IDLE_S = 2e-4
"""An early call of this length does work that a warm one doesn't, if that is below ``_IDLE_S``."""
_WITH_OWN_START = {"compile_time", "compile_time_cached", "graphs", "device_time_p50"}
"""Metrics of calls whose first one compiles, or initialises a device."""


@dataclass(frozen=True, slots=True)
class Values:
    """One side's values of one metric, with the workers they were taken from."""

    outputs: tuple[WorkerOutput, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, outputs: Iterable[WorkerOutput], metric: str) -> Values:
        """Return the values of those workers that have any."""
        having = tuple(output for output in outputs if metric in output.values)
        return cls(having, tuple(float(output.values[metric]) for output in having))

    def at_least(self, floor: float | None) -> Values:
        """Return the values with those below ``floor`` raised to it."""
        if floor is None:
            return self
        return Values(self.outputs, tuple(max(value, floor) for value in self.values))

    @property
    def samples(self) -> int:
        """The number of samples that the workers took."""
        return sum(output.samples for output in self.outputs)

    def estimate(self, *, logarithmic: bool) -> Estimate:
        """Return the mean, with its interval if there are enough workers."""
        summary, count = summarise(self.values, logarithmic=logarithmic), len(self.values)
        lo, hi = (summary.lo, summary.hi) if count >= DECIDING_ROUNDS else (None, None)
        return Estimate(summary.center, lo, hi, count, self.samples, _shown(self.values))

    def exact_estimate(self) -> Estimate | None:
        """Return the upper median. ``lo`` and ``hi`` are the workers' extremes, not an interval."""
        if not self.values:
            return None
        center, lo, hi = upper_median(self.values), min(self.values), max(self.values)
        return Estimate(center, lo, hi, len(self.values), self.samples)


def with_calls(row: Comparison, before: Values | None, after: Values) -> Comparison:
    """Return ``row`` with each side's quantiles and first calls, as medians over its workers.

    A remark is added if a side's calls are so short that they do nothing, or do it only once.
    """
    base, head = (
        replace(
            estimate, quantiles=_quantiles(side.outputs), first_calls=_first_calls(side.outputs)
        )
        if estimate and side
        else estimate
        for estimate, side in ((row.base, before), (row.head, after))
    )
    centers = [side.center for side in (base, head) if side and side.center is not None]
    idle = [center for center in centers if center < _IDLE_S]
    remarks = [finding("does-nothing", seconds=max(idle))] if idle else []
    for side in (before, after):
        if side and (once := _done_once(side.outputs)):
            remarks = [once]  # says more than does-nothing
    return replace(row, base=base, head=head, findings=(*remarks, *row.findings))


def _done_once(outputs: Sequence[WorkerOutput]) -> Finding | None:
    """Return a remark if a warm call can't do what an early one does.

    None if something is compiled, or runs on a device: then the early calls have work of their own.
    """
    calls = _first_calls(outputs)
    if not calls or any(_WITH_OWN_START & output.values.keys() for output in outputs):
        return None
    warm, early = median([output.values[_CALL] for output in outputs]), max(calls)
    idle_later = warm < _IDLE_S and early >= _BEFORE_IDLE_S
    once = idle_later or (early >= _LEAST_ONCE_S and warm < early / _ONCE_RATIO)
    return finding(DONE_ONCE, warm=warm, early=early) if once else None


def _quantiles(outputs: Sequence[WorkerOutput]) -> tuple[float, ...]:
    known = [output.quantiles for output in outputs if output.quantiles]
    if len({*map(len, known)}) != 1:
        return ()
    return _shown([median(at) for at in zip(*known, strict=True)])


def _first_calls(outputs: Sequence[WorkerOutput]) -> tuple[float, ...]:
    """Return the durations of the first calls. Each call's is the median over the workers."""
    known = [output.first_calls for output in outputs if output.first_calls]
    return _shown([median(at) for at in zip(*known, strict=False)])


def _shown(values: Sequence[float]) -> tuple[float, ...]:
    """Return the first ``MOST_VALUES`` values, to six digits, or none if any value isn't finite."""
    if not all(map(math.isfinite, values)):
        return ()
    return tuple(float(f"{value:.6g}") for value in values[:MOST_VALUES])


def paired_workers(
    base: Iterable[WorkerOutput], head: Iterable[WorkerOutput]
) -> list[tuple[WorkerOutput, WorkerOutput]]:
    """Return both sides' workers of each round that has both, in order."""
    before = {output.round: output for output in base}
    pairs = [(before[output.round], output) for output in head if output.round in before]
    return sorted(pairs, key=lambda pair: pair[1].round)


def pair_values(base: WorkerOutput, head: WorkerOutput, metric: str) -> tuple[float, float]:
    """Return one round's values of ``metric``, base's and head's.

    If bursts of ``metric`` lay side by side, the ratio of the two values is that of these bursts.
    The two values returned have the geometric mean of the sides' own values, so swapping the sides
    swaps the values.
    """
    before, after = float(base.values[metric]), float(head.values[metric])
    if metric not in base.beside or metric not in head.beside or min(before, after) <= 0.0:
        return before, after
    center = math.sqrt(before * after)
    # each has the log of its own value ÷ the other's, so half of the ratio is a quarter of both
    half = (head.beside[metric] - base.beside[metric]) / 4.0
    return center * math.exp(-half), center * math.exp(half)


def compare_pairs(
    empty: Comparison, metric: Metric, policy: Policy, base: Values, head: Values
) -> Comparison:
    """Return the row ``empty`` with the evidence of rounds; each round is a pair of workers."""
    alone = {each.round for each in base.outputs} ^ {each.round for each in head.outputs}
    if alone:
        which = ", ".join(map(str, sorted(alone)))
        empty = empty.noting(finding("round-on-one-side", which=which))
    pairs = paired_workers(base.outputs, head.outputs)
    values = [pair_values(*pair, metric.name) for pair in pairs]
    base, head = (
        Values(tuple(pair[side] for pair in pairs), tuple(pair[side] for pair in values))
        for side in (0, 1)
    )
    base, head = base.at_least(metric.floor), head.at_least(metric.floor)
    speeds = speeds_of(metric, base.values, head.values)
    sides = at_one_speed(base.values, head.values, speeds)
    evidence = paired_evidence(
        *sides,
        alpha=policy.alpha,
        absolute=metric.absolute,
        step=metric.step,
        fewest=DECIDING_ROUNDS,
        confidence=policy.confidence(metric),
        speeds=speeds,
    )
    servers = [output.server for output in base.outputs]
    caveat = caveat_of_rounds(*sides, evidence.ratio) or caveat_of_servers(*sides, servers)
    if speeds:
        empty = empty.noting(speeds_finding(speeds))
    row = _tested(empty, metric, evidence, base, head)
    if _has_logs(metric, base, head) and evidence.ratio is not None and len(pairs) > 1:
        row = _at_typical_round(row, base, head, evidence.ratio)
    return replace(row, caveat=caveat)


def _at_typical_round(row: Comparison, base: Values, head: Values, ratio: float) -> Comparison:
    """Return ``row`` with the sides' centres around the level of the median round, at ``ratio``.

    The sides' means have the same ratio, but one disturbed round moves both means to a level that
    no round was at.
    """
    logs = [math.log(b) + math.log(h) for b, h in zip(base.values, head.values, strict=True)]
    level = math.exp(median(logs) / 2.0)

    def centred(side: Estimate | None, center: float) -> Estimate | None:
        if side is None or side.lo is None or side.hi is None:
            return side and replace(side, center=center)
        return replace(side, center=center, lo=min(side.lo, center), hi=max(side.hi, center))

    root = math.sqrt(ratio)
    return replace(row, base=centred(row.base, level / root), head=centred(row.head, level * root))


def compare_unpaired(
    empty: Comparison,
    metric: Metric,
    alpha: float,
    sessions: Sequence[Sequence[float]],
    base: Values,
    head: Values,
    day: DayShift | None = None,
) -> Comparison:
    """Return the row ``empty`` with the evidence of sides that were measured separately.

    ``sessions`` are base's values by session. ``day`` is how far the machine has moved since then:
    base's numbers are shown as they would be today.
    """
    base, head = base.at_least(metric.floor), head.at_least(metric.floor)
    if metric.floor is not None:
        sessions = [[max(value, metric.floor) for value in session] for session in sessions]
    evidence = unpaired_evidence(
        sessions,
        head.values,
        alpha=alpha,
        absolute=metric.absolute,
        step=metric.step,
        fewest=DECIDING_ROUNDS,
        day=day,
    )
    row = _tested(empty, metric, evidence, base, head)
    if day and (metric.absolute or _has_logs(metric, base, head)) and row.base:
        row = replace(row, base=_on_day(row.base, day, metric), anchors=day.anchors)
    return replace(
        row,
        caveat=caveat_of_workers(base.values, head.values, row.ratio),
        base_sessions=len(list(filter(None, sessions))),
    )


def _on_day(base: Estimate, day: DayShift, metric: Metric) -> Estimate:
    """Return a stored estimate as it would be on another day."""

    def moved(value: float | None) -> float | None:
        if value is None:
            return None
        return value + day.mean if metric.absolute else value * math.exp(day.mean)

    return replace(
        base,
        center=moved(base.center),
        lo=moved(base.lo),
        hi=moved(base.hi),
        values=tuple(shown for value in base.values if (shown := moved(value)) is not None),
    )


def _tested(
    empty: Comparison, metric: Metric, evidence: Evidence, base: Values, head: Values
) -> Comparison:
    """Return the row ``empty`` with its evidence and both sides' estimates."""
    logarithmic = _has_logs(metric, base, head)
    own = {
        "base": base.estimate(logarithmic=logarithmic),
        "head": head.estimate(logarithmic=logarithmic),
        "findings": (*empty.findings, *evidence.findings),
    }
    row = replace(empty, **inherited(Evidence, evidence) | own)  # a row has all fields of Evidence
    # the evidence has no standard error of a ratio of arithmetic means
    is_share_of_mean = not logarithmic and evidence.difference is None
    return replace(row, se=standard_error(row)) if is_share_of_mean else row


def _has_logs(metric: Metric, base: Values, head: Values) -> bool:
    """Say whether the values are compared by their logarithms, as ratios of geometric means."""
    return not metric.absolute and not any(value <= 0.0 for value in (*base.values, *head.values))
