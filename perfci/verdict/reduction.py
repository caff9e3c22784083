"""Pure: a worker's raw ``Measurement`` to one value per metric."""

from __future__ import annotations

import array
import base64
import sys
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeVar

from perfci.metrics import Collector, Warm, families
from perfci.model.worker import Burst, Measurement, WorkerOutput
from perfci.stats.quantile import tail_quantile

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
_T = TypeVar("_T")
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
    ancestor: int = 0,
) -> WorkerOutput:
    """Return the worker's metrics; ``energy`` is what its card took in J, None where it has none.

    A metric's own reason for being missing is the worker's, where that gives one. ``installed`` are
    others' modules of metrics that the worker's Python has. UsageError for a broken one.
    """
    bursts = tuple(_judged(burst) for burst in raw.bursts)
    kept = _kept(bursts)
    reasons = Counter(burst.set_aside for burst in bursts if burst.set_aside)
    by_burst = _kept_samples(raw.samples_ns, kept)
    device_by_burst = _kept_samples(raw.device_samples_ns or ("",) * len(kept), kept)
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
    readings = [family.read("its reduce", partial(family.reduce, warm)) for family in families()]
    values = {**raw.values, **_union(one.values for one in readings)}
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
        bursts_set_aside=kept.count(False),
        bursts_disturbed=reasons.total() - kept.count(False),
        disturbance=next((reason for reason, _ in reasons.most_common(1)), ""),
        bursts=_union(one.bursts for one in readings),
        warnings=raw.warnings,
        extra_metrics=tuple(extra.values()),
        ancestor=ancestor,
    )


def _union(parts: Iterable[Mapping[str, _T]]) -> dict[str, _T]:
    return {name: value for part in parts for name, value in part.items()}


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


def _kept_samples(encoded: Sequence[str], kept: Sequence[bool]) -> tuple[Sequence[float], ...]:
    """Return each burst's samples in s; none for those excluded. ValueError for other bursts."""
    return tuple(
        _in_seconds(samples) if keep else () for samples, keep in zip(encoded, kept, strict=True)
    )


def _in_seconds(encoded: str) -> list[float]:
    values = array.array("q")
    values.frombytes(base64.b64decode(encoded))
    if sys.byteorder == "big":
        values.byteswap()
    return [ns / 1e9 for ns in values]


def _sorted(by_burst: Sequence[Sequence[float]]) -> list[float]:
    return sorted(chain.from_iterable(by_burst))
