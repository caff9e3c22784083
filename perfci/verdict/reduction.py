"""Pure: a worker's raw ``Measurement`` to one value per metric."""

from __future__ import annotations

import array
import base64
import sys
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain

from perfci.metrics import Collector, Warm, families
from perfci.model.worker import Burst, Measurement, WorkerOutput
from perfci.stats.quantile import tail_quantile

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
_STOLEN_SHARE = 0.1
"""A burst whose worker was off its core for more than this share of the time is excluded."""


def reduce(
    raw: Measurement,
    *,
    case: str,
    side: str,
    round_number: int,
    cold_cache: bool,
    energy: float | None = None,
    installed: Container[str] = (),
) -> WorkerOutput:
    """Return the worker's metrics; ``energy`` is what its card took in J, None where it has none.

    A metric's own reason for being missing is the worker's, where that gives one. ``installed`` are
    others' modules of metrics that the worker's Python has. UsageError for a broken one.
    """
    bursts = tuple(_judged(burst) for burst in raw.bursts)
    kept = _kept(bursts)
    reasons = Counter(burst.set_aside for burst in bursts if burst.set_aside)
    by_burst = _by_burst(raw.samples_ns, bursts, kept)
    device_by_burst = _by_burst(raw.device_samples_ns, bursts, kept)
    samples, device_samples = _sorted(by_burst), _sorted(device_by_burst)
    warm = Warm(
        replace(raw, bursts=bursts),
        cold_cache=cold_cache,
        bursts=by_burst,
        samples=samples,
        device_bursts=device_by_burst,
        device_samples=device_samples,
        energy=energy,
    )
    values = dict(raw.values)
    missing: dict[str, str] = {}
    medians: dict[str, tuple[float | None, ...]] = {}
    for family in families():
        reading = family.read("its reduce", partial(family.reduce, warm))
        values |= reading.values
        missing |= reading.missing
        medians |= reading.bursts
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
        bursts_set_aside=kept.count(False),
        bursts_disturbed=reasons.total() - kept.count(False),
        disturbance=next((reason for reason, _ in reasons.most_common(1)), ""),
        bursts=medians,
        warnings=raw.warnings,
        extra_metrics=tuple(extra.values()),
    )


def _judged(burst: Burst) -> Burst:
    if not burst.set_aside and burst.run_delay > _STOLEN_SHARE * burst.duration:
        return replace(burst, set_aside="core taken")
    return burst


def _kept(bursts: Sequence[Burst]) -> tuple[bool, ...]:
    """Keep all where fewer than half would stay: the disturbance is then the machine's normal.

    The report says that they were kept: these are the numbers of a disturbed machine.
    """
    kept = tuple(not burst.set_aside for burst in bursts)
    return kept if 2 * sum(kept) >= len(kept) else tuple(True for _ in bursts)


def _by_burst(
    encoded: str, bursts: Sequence[Burst], kept: Sequence[bool]
) -> tuple[Sequence[float], ...]:
    """Return each burst's samples in s; none for those excluded."""
    values = array.array("q")
    values.frombytes(base64.b64decode(encoded))
    if sys.byteorder == "big":
        values.byteswap()
    ends = list(accumulate(burst.samples for burst in bursts))
    return tuple(
        [ns / 1e9 for ns in values[end - burst.samples : end]] if keep else ()
        for burst, end, keep in zip(bursts, ends, kept, strict=True)
    )


def _sorted(by_burst: Sequence[Sequence[float]]) -> list[float]:
    return sorted(chain.from_iterable(by_burst))
