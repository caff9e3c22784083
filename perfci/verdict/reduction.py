"""The reduction of a round's measurements: one value per metric of each worker, and ratios.

A burst is excluded if the kernel kept its worker off the core, unless it is slow without that time,
too: long calls are interrupted most. Usually another program on the machine took the core. But the
cause may be the code, whose own threads compete for it. So the values with such bursts are
recorded, too (``WorkerOutput.with_delayed``).
"""

from __future__ import annotations

import array
import base64
import math
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter
from typing import TypeVar

from perfci.metrics import METRICS, Collector, Reading, Warm, metric_groups
from perfci.model import inherited
from perfci.model.case import Metric
from perfci.model.measuring import WorkerOutput
from perfci.model.worker import (
    MOST_FIRST_CALLS,
    REPLACED,
    THROTTLED,
    Measurement,
    WorkerBlock,
    WorkerReading,
)
from perfci.stats.quantile import median, tail_quantile

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
"""Quantiles of a worker's samples that its output holds."""
Medians = Sequence[float | None]
"""One side's median of a metric in each burst, None for a burst without a value."""
_T = TypeVar("_T")
_SAMPLES, _DEVICE_SAMPLES = attrgetter("samples"), attrgetter("device_samples")
_STOLEN_SHARE = 0.1
"""A burst whose worker was off its core for more than this share of the time is excluded."""
_SLOW_ITSELF = 2.0
"""A burst isn't excluded if its time on the core is more than this many times the usual one."""
_DELAYED = "core taken"
"""Reason for excluding a burst: its worker was off its core."""


def reduce(
    raw: Measurement,
    *,
    case: str,
    side: str,
    round_number: int,
    cold_cache: bool,
    installed: Container[str] = (),
    server: int = 0,
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
    extra, not_installed = _of_other_distributions(values, installed)
    extra |= {metric.name: metric for metric in raw.extra_metrics}
    missing = not_installed | _union(reading.missing for reading in readings) | {**raw.missing}
    changed = {
        "values": values,
        "missing": {name: why for name, why in missing.items() if name not in values},
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
        server=server,
        bursts_delayed=disturbances.count(_DELAYED),
        with_delayed=_with_delayed(values, bursts, kept, disturbances, read),
    )


def _of_other_distributions(
    values: Mapping[str, float], installed: Container[str]
) -> tuple[dict[str, Metric], dict[str, str]]:
    """Return the metrics of other distributions that have a value, and why others are missing."""
    extra: dict[str, Metric] = {}
    missing: dict[str, str] = {}
    for group in (group for group in metric_groups() if group.distribution):
        extra |= {metric.name: metric for metric in group.metrics if metric.name in values}
        if group.collector is not Collector and group.name not in installed:
            why = f"{group.distribution} is not installed in the Python that measures"
            missing |= dict.fromkeys(group.about, why)
    return extra, missing


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
    on_core = [
        max(0.0, sum(samples) - delay) / len(samples)
        for samples, delay in zip(by_burst, delays, strict=True)
    ]
    slow = _SLOW_ITSELF * median(on_core) if on_core else 0.0
    return tuple(
        block.set_aside
        or (_delay_reason(block) if delay > _STOLEN_SHARE * sum(samples) and own <= slow else "")
        for block, delay, samples, own in zip(of_bursts, delays, by_burst, on_core, strict=True)
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
