"""Pure: a worker's raw ``Measurement`` to one value per metric."""

from __future__ import annotations

import array
import base64
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

from perfci.metrics import METRICS, Collector, Reading, Warm, families
from perfci.model.worker import MOST_FIRST_CALLS, Block, Measurement, WorkerOutput
from perfci.stats.quantile import tail_quantile

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
_T = TypeVar("_T")
_STOLEN_SHARE = 0.1
"""A burst whose worker was off its core for more than this share of the time is excluded."""
_DELAYED = "core taken"


def reduce(
    raw: Measurement,
    *,
    case: str,
    side: str,
    round_number: int,
    cold_cache: bool,
    energy: float | None = None,
    installed: Container[str] = (),
    ancestor: int = 0,
) -> WorkerOutput:
    """Return the worker's metrics; ``energy`` is what its card took in J, None where it has none.

    A metric's own reason for being missing is the worker's, where that gives one. ``installed`` are
    others' modules of metrics that the worker's Python has. UsageError for a broken one.
    """
    by_burst = _by_burst(raw.samples_ns, raw.blocks)
    disturbances = _disturbances(raw.blocks, by_burst)
    kept = _kept(disturbances)
    reasons = Counter(filter(None, disturbances))
    read = partial(_read, raw, cold_cache=cold_cache, energy=energy)
    readings, samples = read(kept)
    values = {**raw.values, **_union(one.values for one in readings)}
    bursts = _union(one.bursts for one in readings)
    missing = _union(one.missing for one in readings)
    extra = {metric.name: metric for metric in raw.extra_metrics}
    for family in (one for one in families() if one.distribution):
        extra = {one.name: one for one in family.metrics if one.name in values} | extra
        if family.collector is not Collector and family.name not in installed:
            why = f"{family.distribution} is not installed in the Python that measures"
            missing = {one: why for one in family.about if one not in values} | missing
    return WorkerOutput(
        case=case,
        side=side,
        round=round_number,
        values=values,
        samples=len(samples),
        missing={**missing, **raw.missing},
        quantiles=tuple(tail_quantile(samples, q) for q in QUANTILES) if samples else (),
        phases=raw.phases,
        graph_events=raw.graph_events,
        bursts_measured=len(kept),
        bursts_set_aside=kept.count(False),
        bursts_disturbed=reasons.total() - kept.count(False),
        disturbance=next((reason for reason, _ in reasons.most_common(1)), ""),
        bursts=bursts,
        warnings=raw.warnings,
        remarks=raw.remarks,
        first_calls=raw.first_calls[:MOST_FIRST_CALLS],
        extra_metrics=tuple(extra.values()),
        ancestor=ancestor,
        bursts_delayed=disturbances.count(_DELAYED),
        with_delayed=_with_delayed(values, bursts, kept, disturbances, read),
    )


def _read(
    raw: Measurement, kept: Sequence[bool], *, cold_cache: bool, energy: float | None
) -> tuple[list[Reading], Sequence[float]]:
    """Return what the families make of the bursts that are ``kept``, and these bursts' samples."""
    by_burst = _without(_by_burst(raw.samples_ns, raw.blocks), kept)
    device_by_burst = (
        _without(_by_burst(raw.device_samples_ns, raw.blocks), kept)
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
        energy=energy,
    )
    return [
        family.read("its reduce", partial(family.reduce, warm)) for family in families()
    ], samples


def _with_delayed(
    values: Mapping[str, float],
    bursts: Container[str],
    kept: Sequence[bool],
    disturbances: Sequence[str],
    read: Callable[[Sequence[bool]], tuple[list[Reading], Sequence[float]]],
) -> dict[str, float]:
    """Return the sampled metrics that are others where delayed bursts are kept.

    Those that are compared by bursts side by side (``bursts``) are medians, and stay.
    """
    all_kept = [keep or reason == _DELAYED for keep, reason in zip(kept, disturbances, strict=True)]
    if all_kept == list(kept):
        return {}
    readings, _ = read(all_kept)
    return {
        name: value
        for name, value in _union(one.values for one in readings).items()
        if METRICS[name].kind == "sampled" and name not in bursts and value != values.get(name)
    }


def _union(parts: Iterable[Mapping[str, _T]]) -> dict[str, _T]:
    return {name: value for part in parts for name, value in part.items()}


def _by_burst(encoded: Sequence[str], blocks: Sequence[Block]) -> list[Sequence[float]]:
    """Return each burst's samples in s. ValueError for others than the blocks have."""
    bursts: list[Sequence[float]] = []
    for text, block in zip(encoded, blocks, strict=True):
        samples, size = _in_seconds(text), block.samples
        if size < 1 or block.bursts < 0 or len(samples) != size * block.bursts:
            raise ValueError(f"{len(samples)} samples in {block.bursts} bursts of {size}")
        bursts.extend(samples[begin : begin + size] for begin in range(0, len(samples), size))
    return bursts


def _calls_by_burst(encoded: str, blocks: Sequence[Block]) -> list[Sequence[float]]:
    """Return what each burst's calls took, in s, without those that led it in.

    ValueError for fewer calls than the blocks have. There may be more: energy is read after them.
    """
    calls, begin = _in_seconds(encoded), 0
    bursts: list[Sequence[float]] = []
    for block in blocks:
        for _ in range(block.bursts):
            begin += block.lead_in
            bursts.append(calls[begin : begin + block.samples])
            begin += block.samples
    if len(calls) < begin:
        raise ValueError(f"{len(calls)} observed calls, of {begin}")
    return bursts


def _disturbances(blocks: Sequence[Block], by_burst: Sequence[Sequence[float]]) -> tuple[str, ...]:
    """Return what disturbed each burst, or nothing. ValueError where a burst has no run delay."""
    delays = [delay for block in blocks for delay in block.run_delay]
    reasons = [block.set_aside for block in blocks for _ in range(block.bursts)]
    return tuple(
        reason or (_DELAYED if delay > _STOLEN_SHARE * sum(samples) else "")
        for reason, delay, samples in zip(reasons, delays, by_burst, strict=True)
    )


def _kept(disturbances: Sequence[str]) -> tuple[bool, ...]:
    """Keep all where fewer than half would stay: the disturbance is then the machine's normal.

    The report says that they were kept: these are the numbers of a disturbed machine.
    """
    kept = tuple(not reason for reason in disturbances)
    return kept if 2 * sum(kept) >= len(kept) else tuple(True for _ in kept)


def _without(bursts: Sequence[Sequence[float]], kept: Sequence[bool]) -> list[Sequence[float]]:
    """Return the bursts, those excluded without samples."""
    return [samples if keep else () for samples, keep in zip(bursts, kept, strict=False)]


def _in_seconds(encoded: str) -> list[float]:
    values = array.array("q")
    values.frombytes(base64.b64decode(encoded))
    if sys.byteorder == "big":
        values.byteswap()
    return [ns / 1e9 for ns in values]


def _sorted(by_burst: Sequence[Sequence[float]]) -> list[float]:
    return sorted(chain.from_iterable(by_burst))
