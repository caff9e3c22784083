"""Sampled metrics: reduce a worker's measurement to one value per metric, and test both sides.

A burst is excluded if the kernel kept its worker off the core: usually another program on the
machine made it slow. But the cause may be the code, whose own threads compete for the core. So the
values with such bursts are recorded, too (``WorkerOutput.with_delayed``).
"""

from __future__ import annotations

import array
import base64
import math
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter
from typing import TypeVar

from perfci.finding import DONE_ONCE, Evidence, finding
from perfci.metrics import METRICS, Collector, Reading, Warm, metric_groups
from perfci.model import inherited
from perfci.model.case import Metric
from perfci.model.measuring import DECIDING_ROUNDS, WorkerOutput
from perfci.model.report import MOST_VALUES, Comparison, Estimate
from perfci.model.worker import (
    MOST_FIRST_CALLS,
    REPLACED,
    THROTTLED,
    Measurement,
    WorkerBlock,
    WorkerReading,
)
from perfci.stats.evidence import paired_evidence, summarise, unpaired_evidence
from perfci.stats.quantile import median, tail_quantile, upper_median
from perfci.stats.t_tests import DayShift
from perfci.verdict.caveats import caveat_of_rounds, caveat_of_workers
from perfci.verdict.policy import Policy, standard_error
from perfci.verdict.speeds import at_one_speed, speeds_finding, speeds_of

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
"""Quantiles of a worker's samples that its output holds."""
_T = TypeVar("_T")
_SAMPLES, _DEVICE_SAMPLES = attrgetter("samples"), attrgetter("device_samples")
_STOLEN_SHARE = 0.1
"""A burst whose worker was off its core for more than this share of the time is excluded."""
_DELAYED = "core taken"
"""Reason for excluding a burst: its worker was off its core."""
_IDLE_S = 3e-7
"""A shorter call is mostly the time of the clock and of calling any function (about 1e-7 s)."""
_CALL = "latency_p50"
_ONCE, _LEAST_ONCE_S = 10_000.0, 0.001
"""An early call that takes a multiple of a warm one, and at least this long, does work that a warm
one doesn't."""
_STARTS_WITH_MORE = {"compile_time", "compile_time_cached", "graphs", "device_time_p50"}
"""Metrics of calls that compile, or initialise a device."""


def reduce(
    raw: Measurement,
    *,
    case: str,
    side: str,
    round_number: int,
    cold_cache: bool,
    installed: Container[str] = (),
    ancestor: int = 0,
) -> WorkerOutput:
    """Return the worker's output, with its metrics.

    If the worker says why a metric is missing, its reason takes precedence. ``installed`` names the
    metric modules of other distributions that the worker's Python has. Raises UsageError for a
    broken metric module.
    """
    by_burst = samples_by_burst(raw.samples_ns, raw.blocks)
    disturbances = _disturbances(raw.blocks, by_burst)
    kept = _kept(disturbances)
    reasons = Counter(filter(None, disturbances))
    read = partial(_read, raw, cold_cache=cold_cache)
    readings, samples = read(kept)
    values = {**raw.values, **_union(reading.values for reading in readings)}
    bursts = _union(reading.bursts for reading in readings)
    missing = _union(reading.missing for reading in readings)
    extra = {metric.name: metric for metric in raw.extra_metrics}
    for group in (group for group in metric_groups() if group.distribution):
        extra = {metric.name: metric for metric in group.metrics if metric.name in values} | extra
        if group.collector is not Collector and group.name not in installed:
            why = f"{group.distribution} is not installed in the Python that measures"
            missing = {name: why for name in group.about if name not in values} | missing
    all_missing = {**missing, **raw.missing}
    changed = {
        "values": values,
        "missing": {name: why for name, why in all_missing.items() if name not in values},
        "bursts": bursts,
        "first_calls": raw.first_calls[:MOST_FIRST_CALLS],
        "extra_metrics": tuple(extra.values()),
    }
    return WorkerOutput(
        **inherited(WorkerReading, raw) | changed,
        case=case,
        side=side,
        round=round_number,
        samples=len(samples),
        quantiles=tuple(tail_quantile(samples, q) for q in QUANTILES) if samples else (),
        bursts_measured=len(kept),
        bursts_set_aside=kept.count(False),
        bursts_disturbed=reasons.total() - kept.count(False),
        disturbance=next((reason for reason, _ in reasons.most_common(1)), ""),
        ancestor=ancestor,
        bursts_delayed=disturbances.count(_DELAYED),
        with_delayed=_with_delayed(values, bursts, kept, disturbances, read),
    )


def _read(
    raw: Measurement,
    kept: Sequence[bool],
    *,
    cold_cache: bool,
) -> tuple[list[Reading], Sequence[float]]:
    """Return each metric group's reading of the ``kept`` bursts, and their sorted samples."""
    by_burst = _without(samples_by_burst(raw.samples_ns, raw.blocks), kept)
    device_by_burst = (
        _without(samples_by_burst(raw.device_samples_ns, raw.blocks, _DEVICE_SAMPLES), kept)
        if raw.device_samples_ns
        else []
    )
    samples = _sorted(by_burst)
    warm = Warm(
        raw,
        cold_cache=cold_cache,
        bursts=by_burst,
        samples=samples,
        device_bursts=device_by_burst,
        device_samples=_sorted(device_by_burst),
        observed={
            metric: _without(_calls_by_burst(text, raw.blocks), kept)
            for metric, text in raw.observed_ns.items()
        },
    )
    return [group.ask("reduce", partial(group.reduce, warm)) for group in metric_groups()], samples


def _with_delayed(
    values: Mapping[str, float],
    bursts: Container[str],
    kept: Sequence[bool],
    disturbances: Sequence[str],
    read: Callable[[Sequence[bool]], tuple[list[Reading], Sequence[float]]],
) -> dict[str, float]:
    """Return the sampled metrics that change if delayed bursts are kept, with their new values.

    Metrics in ``bursts`` are left out: they are medians, and are compared burst by burst.
    """
    all_kept = [keep or reason == _DELAYED for keep, reason in zip(kept, disturbances, strict=True)]
    if all_kept == list(kept):
        return {}
    readings, _ = read(all_kept)
    return {
        name: value
        for name, value in _union(reading.values for reading in readings).items()
        if METRICS[name].kind == "sampled" and name not in bursts and value != values.get(name)
    }


def _union(parts: Iterable[Mapping[str, _T]]) -> dict[str, _T]:
    return {name: value for part in parts for name, value in part.items()}


def samples_by_burst(
    encoded: Sequence[str],
    blocks: Sequence[WorkerBlock],
    samples_in: Callable[[WorkerBlock], int] = _SAMPLES,
) -> list[Sequence[float]]:
    """Return each burst's samples in s. ValueError if their number doesn't match the blocks."""
    bursts: list[Sequence[float]] = []
    for text, block in zip(encoded, blocks, strict=True):
        samples, size = _in_seconds(text), samples_in(block)
        if size < 1 or block.bursts < 0 or len(samples) != size * block.bursts:
            raise ValueError(f"{len(samples)} samples in {block.bursts} bursts of {size}")
        bursts.extend(samples[begin : begin + size] for begin in range(0, len(samples), size))
    return bursts


def _calls_by_burst(encoded: str, blocks: Sequence[WorkerBlock]) -> list[Sequence[float]]:
    """Return the durations of each burst's calls, in s, without its lead-in calls.

    ValueError for fewer calls than the blocks have. More calls are fine: some follow the blocks.
    """
    calls, begin = _in_seconds(encoded), 0
    bursts: list[Sequence[float]] = []
    for block in blocks:
        begin += block.calls_before
        for lead_in in block.lead_ins or (0,) * block.bursts:
            begin += lead_in
            bursts.append(calls[begin : begin + block.samples])
            begin += block.samples + block.timed_apart
    if len(calls) < begin:
        raise ValueError(f"{len(calls)} observed calls, of {begin}")
    return bursts


def _disturbances(
    blocks: Sequence[WorkerBlock], by_burst: Sequence[Sequence[float]]
) -> tuple[str, ...]:
    """Return what disturbed each burst, or "". ValueError if a burst has no run delay."""
    delays = [delay for block in blocks for delay in block.run_delay]
    of_bursts = [block for block in blocks for _ in range(block.bursts)]
    return tuple(
        block.set_aside or (_delay_reason(block) if delay > _STOLEN_SHARE * sum(samples) else "")
        for block, delay, samples in zip(of_bursts, delays, by_burst, strict=True)
    )


def _delay_reason(block: WorkerBlock) -> str:
    return THROTTLED if block.throttled > _STOLEN_SHARE * block.duration else _DELAYED


def _kept(disturbances: Sequence[str]) -> tuple[bool, ...]:
    """Return which bursts are kept: the undisturbed ones, or all if those are fewer than half.

    In the latter case disturbance is normal on this machine, and the report warns of it. A burst
    that another burst replaces is never kept.
    """
    kept = tuple(not reason for reason in disturbances)
    valid = tuple(reason != REPLACED for reason in disturbances)
    return kept if 2 * sum(kept) >= sum(valid) else valid


def _without(bursts: Sequence[Sequence[float]], kept: Sequence[bool]) -> list[Sequence[float]]:
    """Return all bursts. A burst that isn't kept has no samples, so the indices don't shift."""
    return [samples if keep else () for samples, keep in zip(bursts, kept, strict=False)]


def _in_seconds(encoded: str) -> list[float]:
    values = array.array("q")
    values.frombytes(base64.b64decode(encoded))
    if sys.byteorder == "big":
        values.byteswap()
    return [ns / 1e9 for ns in values]


def _sorted(by_burst: Sequence[Sequence[float]]) -> list[float]:
    return sorted(chain.from_iterable(by_burst))


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

    def exact_estimate(self) -> Estimate:
        """Return the upper median. ``lo`` and ``hi`` are the workers' extremes, not an interval."""
        center, lo, hi = upper_median(self.values), min(self.values), max(self.values)
        return Estimate(center, lo, hi, len(self.values), self.samples)


def with_pairs(row: Comparison, base: Values, head: Values) -> Comparison:
    """Return ``row`` with all pairs' values, or with none if one of them isn't finite."""
    before, after = _shown(base.values), _shown(head.values)
    if not (before and after and row.base and row.head):
        before = after = ()
    return replace(
        row,
        base=replace(row.base, values=before) if row.base else None,
        head=replace(row.head, values=after) if row.head else None,
    )


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
    remarks = (finding("does-nothing", seconds=max(idle)),) if idle else ()
    once = [pair for side in (before, after) if side and (pair := _done_once(side.outputs))]
    if once:
        remarks = (finding(DONE_ONCE, warm=once[-1][0], early=once[-1][1]),)
    return replace(row, base=base, head=head, findings=(*remarks, *row.findings))


def _done_once(outputs: Sequence[WorkerOutput]) -> tuple[float, float] | None:
    """Return the times of a warm and an early call, if a warm call can't do what an early one does.

    None if something is compiled, or runs on a device: then the early calls have work of their own.
    """
    calls = _first_calls(outputs)
    if not calls or any(_STARTS_WITH_MORE & output.values.keys() for output in outputs):
        return None
    warm, early = median([output.values[_CALL] for output in outputs]), max(calls)
    idle = max(_IDLE_S, early / _ONCE)
    return (warm, early) if warm < idle and early >= _LEAST_ONCE_S else None


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


Medians = Sequence[float | None]
"""One side's median of a metric in each burst, None for a burst without a value."""


def pair_values(base: WorkerOutput, head: WorkerOutput, metric: str) -> tuple[float, float]:
    """Return one round's values of ``metric``, base's and head's.

    If both sides have bursts of ``metric``, the ratio of the two values is the median ratio of
    bursts that lay side by side. Their geometric mean is that of the sides' own values. So swapping
    the sides swaps the values.
    """
    before, after = float(base.values[metric]), float(head.values[metric])
    log_ratio = _log_ratio(base, head, metric)
    if log_ratio is None or min(before, after) <= 0.0:
        return before, after
    center = math.sqrt(before * after)
    return center * math.exp(-log_ratio / 2.0), center * math.exp(log_ratio / 2.0)


def _log_ratio(base: WorkerOutput, head: WorkerOutput, metric: str) -> float | None:
    """Return the median log(head / base) over bursts side by side, or None without such bursts."""
    if metric in base.beside and metric in head.beside:
        return (head.beside[metric] - base.beside[metric]) / 2.0
    before, after = base.bursts.get(metric, ()), head.bursts.get(metric, ())
    if len(before) != len(after):
        return None
    ratios = [math.log(h / b) for b, h in zip(before, after, strict=True) if b and h]
    return median(ratios) if ratios else None


def side_by_side(
    outputs: Sequence[WorkerOutput], blocks: Sequence[int]
) -> tuple[WorkerOutput, ...]:
    """Return one round's outputs with the log ratios between their bursts.

    ``outputs`` are in the order in which they began. ``blocks`` has for each block the number of
    bursts per side; the side that begins alternates. The medians of single bursts are dropped:
    there are hundreds, and nothing else needs them.
    """
    logs: dict[str, float] = {}
    if len(outputs) == 2:
        first, second = outputs
        for metric in first.bursts.keys() & second.bursts.keys():
            ratios = list(_neighbours(first.bursts[metric], second.bursts[metric], blocks))
            if ratios:
                logs[metric] = median(ratios)
    signs = (-1.0, 1.0)
    return tuple(
        replace(output, bursts={}, beside={name: sign * log for name, log in logs.items()})
        for output, sign in zip(outputs, signs, strict=False)
    )


def _neighbours(first: Medians, second: Medians, blocks: Sequence[int]) -> Iterator[float]:
    """Yield log(second / first) for each two bursts that followed each other within a block.

    Every burst but the outermost has a neighbour before it and one after it, so a drift cancels.
    """
    if not len(first) == len(second) == sum(blocks):
        return
    begin = 0
    for number, bursts in enumerate(blocks):
        sides = first[begin : begin + bursts], second[begin : begin + bursts]
        begin += bursts
        # in every other block the second side began: its sides and its signs are reversed
        sign = -1.0 if number % 2 else 1.0
        in_turn = list(chain.from_iterable(zip(*sides[:: int(sign)], strict=True)))
        for before, after in pairwise(in_turn):
            if before and after:
                yield sign * math.log(after / before)
            sign = -sign


def compare_pairs(
    empty: Comparison, metric: Metric, policy: Policy, base: Values, head: Values
) -> Comparison:
    """Return the row ``empty`` with the evidence of rounds; each round is a pair of workers."""
    before = {output.round: output for output in base.outputs}
    after = {output.round: output for output in head.outputs}
    rounds = sorted(before.keys() & after.keys())
    alone = sorted(before.keys() ^ after.keys())
    if alone:
        which = ", ".join(map(str, alone))
        empty = empty.noting(finding("round-on-one-side", which=which))
    pairs = [pair_values(before[number], after[number], metric.name) for number in rounds]
    base = Values(tuple(before[number] for number in rounds), tuple(pair[0] for pair in pairs))
    head = Values(tuple(after[number] for number in rounds), tuple(pair[1] for pair in pairs))
    base, head = base.at_least(metric.floor), head.at_least(metric.floor)
    ancestors = [_common_ancestor(before[number], after[number]) for number in rounds]
    speeds = speeds_of(metric, base.values, head.values, ancestors)
    sides = at_one_speed(base.values, head.values, speeds)
    evidence = paired_evidence(
        *sides,
        alpha=policy.alpha,
        absolute=metric.absolute,
        step=metric.step,
        fewest=DECIDING_ROUNDS,
        ancestors=ancestors,
        confidence=policy.confidence(metric),
        speeds=speeds,
    )
    caveat = caveat_of_rounds(*sides, evidence.ratio)
    if speeds:
        empty = empty.noting(speeds_finding(speeds))
    row = _tested(empty, metric, evidence, base, head)
    if _has_logs(metric, base, head) and evidence.ratio is not None and len(rounds) > 1:
        row = _at_typical_round(row, base, head, evidence.ratio)
    return replace(with_pairs(row, base, head), caveat=caveat)


def _at_typical_round(row: Comparison, base: Values, head: Values, ratio: float) -> Comparison:
    """Return ``row`` with the sides' centres around the level of the median round, at ``ratio``.

    The sides' means have the same ratio, but one disturbed round moves both means to a level that
    no round was at.
    """
    logs = [math.log(b) + math.log(h) for b, h in zip(base.values, head.values, strict=True)]
    level = math.exp(median(logs) / 2.0)
    sides = (row.base, level / math.sqrt(ratio)), (row.head, level * math.sqrt(ratio))
    before, after = (side and _centred(side, center) for side, center in sides)
    return replace(row, base=before, head=after)


def _centred(side: Estimate, center: float) -> Estimate:
    if side.lo is None or side.hi is None:
        return replace(side, center=center)
    return replace(side, center=center, lo=min(side.lo, center), hi=max(side.hi, center))


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

    ``sessions`` are base's values by session. With a ``day``, base's numbers are shown as they
    would be today.
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
    estimates = {
        "base": base.estimate(logarithmic=logarithmic),
        "head": head.estimate(logarithmic=logarithmic),
        "findings": (*empty.findings, *evidence.findings),
    }
    row = replace(empty, **inherited(Evidence, evidence) | estimates)
    is_share_of_mean = not logarithmic and evidence.difference is None
    return replace(row, se=standard_error(row)) if is_share_of_mean else row


def _has_logs(metric: Metric, base: Values, head: Values) -> bool:
    """Say whether the values are compared by their logarithms, as ratios of geometric means."""
    return not metric.absolute and not any(value <= 0.0 for value in (*base.values, *head.values))


def _common_ancestor(base: WorkerOutput, head: WorkerOutput) -> int:
    return base.ancestor if base.ancestor == head.ancestor else 0
