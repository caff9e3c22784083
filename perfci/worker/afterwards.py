"""What would disturb the bursts, and is therefore measured after them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perfci.api.work import Work
from perfci.model.worker import Measurement, WorkOrder
from perfci.worker.devices import Device
from perfci.worker.failing import Unusable
from perfci.worker.garbage import collect

if TYPE_CHECKING:
    from perfci.worker.graphs import GraphWatch


def finished(
    measurement: Measurement,
    order: WorkOrder,
    work: Work,
    device: Device | None,
    graphs: GraphWatch | None,
    call_s: float,
) -> Measurement:
    """Add what would disturb the bursts: growth, accuracy, graphs, the benchmark's own metrics."""
    values, missing = dict(measurement.values), dict(measurement.missing)
    warnings: list[str] = []
    events: tuple[Any, ...] = ()
    _grow(values, missing, order, work, device, call_s)
    _judge_accuracy(values, missing, warnings, order, work)
    if graphs:
        counted, uncounted, events, said = graphs.summary(order.root)
        values |= counted
        missing |= uncounted
        warnings += said
    else:
        missing |= dict.fromkeys(("graph_breaks", "recompiles", "graphs"), "not compiled")
    for extra in work.metrics:
        name, value = extra.metric.name, extra.measure()
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise Unusable(
                "not_a_number", f"the metric `{name}` gave {repr(value)[:80]}, which is no number"
            ) from error
        if math.isfinite(number):
            values[name] = number
        else:
            missing[name] = f"the benchmark gave {number}"
    return replace(
        measurement,
        values=values,
        missing=missing,
        graph_events=events,
        warnings=tuple(warnings),
    )


def _grow(
    values: dict[str, float],
    missing: dict[str, str],
    order: WorkOrder,
    work: Work,
    device: Device | None,
    call_s: float,
) -> None:
    from perfci.worker.memory import host_allocated, memory_growth

    if not order.growth:
        return
    if device and "memory_growth" in device.missing():
        missing["memory_growth"] = device.missing()["memory_growth"]
        return
    allocated = device.allocated if device else host_allocated()
    if allocated is None:
        missing["memory_growth"] = "this C library doesn't tell what is allocated"
        return

    def settled() -> float:
        collect()  # what only waits for a collection is no leak
        return allocated()

    growth = memory_growth(work.call, call_s, settled)
    if growth is None:
        missing["memory_growth"] = f"a call of {call_s:.2g} s is too slow for ten points"
    else:
        values["memory_growth"] = growth


def _judge_accuracy(
    values: dict[str, float],
    missing: dict[str, str],
    warnings: list[str],
    order: WorkOrder,
    work: Work,
) -> None:
    if work.accuracy is None:
        missing["accuracy_loss"] = "only inference and training steps have a reference"
        return
    if not order.accuracy:
        return
    import torch

    from perfci.worker.accuracy import AccuracyMismatch, AccuracyUnsupported, accuracy_loss

    try:
        candidate, reference = work.accuracy()
        loss = accuracy_loss(candidate, reference)
    except AccuracyMismatch as error:
        raise Unusable("accuracy", str(error)) from error
    except AccuracyUnsupported as error:
        missing["accuracy_loss"] = str(error)
        warnings.append(f"the output could not be checked: {error}")
    except ValueError as error:  # no reference can be had: said, not failed
        missing["accuracy_loss"] = str(error)
    except (MemoryError, torch.OutOfMemoryError):  # float64 takes twice the memory and more
        missing["accuracy_loss"] = "no memory left for a float64 reference"
    else:
        if math.isfinite(loss):
            values["accuracy_loss"] = loss
        else:
            missing["accuracy_loss"] = "the distance to the reference is too large for a number"
