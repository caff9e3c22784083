"""Measuring one case: set-up, first call, warm-up, bursts as ordered, then what is slow to know."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from perfci.api.work import Work
from perfci.model.worker import Measurement, WorkOrder
from perfci.worker.afterwards import finished
from perfci.worker.building import builder, built_work
from perfci.worker.bursts import Bursts, encoded, warm_up
from perfci.worker.devices import (
    OF_A_DEVICE,
    Device,
    Kind,
    check_devices,
    kinds,
    named,
    used,
    why_on_host,
)
from perfci.worker.failing import Unusable
from perfci.worker.garbage import stop_collecting
from perfci.worker.injecting import ballast, slowed, wait_longer
from perfci.worker.memory import HostMemory

if TYPE_CHECKING:
    from perfci.api.definition import Benchmark
    from perfci.worker.graphs import GraphWatch
    from perfci.worker.main import Stage
    from perfci.worker.protocol import Channel
    from perfci.worker.start import Start

_RUNS_LATER = (
    (CoroutineType, "a coroutine", "call asyncio.run inside it"),
    (GeneratorType, "a generator", "go through it inside the work, `for _ in steps(): pass`"),
    (AsyncGeneratorType, "an async generator", "go through it inside, with asyncio.run"),
)


def measure(
    order: WorkOrder,
    channel: Channel,
    stage: Stage,
    start: Start,
    benchmarks: Sequence[Benchmark],
    look: Callable[[], None] = lambda: None,
) -> None:
    """Measure the order's case; bursts are made as the parent asks for them.

    ``look`` is called once all of it has run.
    """
    build = builder(order, benchmarks)
    found = kinds(order.devices)
    _fix_threads_and_seed(order)
    stage.enter("setup")
    before_setup_ns = time.monotonic_ns()
    work = built_work(build)
    set_up_ns = time.monotonic_ns()
    memory = HostMemory()
    memory.note_setup()
    graphs = _watch_graphs(work)
    device = named(found, work.device) if work.device else None
    _fix_threads_and_seed(order, seed=False)
    stage.enter("first_call")
    before_ns = time.monotonic_ns()
    output = work.call()
    if not work.device:
        device = used(found, output)
    if device:
        device.synchronize()
    if work.compiled:
        wait_longer((time.monotonic_ns() - before_ns) / 1e9, order.inject.get("compile_time", 0.0))
    called_ns = time.monotonic_ns()
    started_ns = _start_ended(start, called_ns, order.inject.get("cold_start", 0.0))
    _check_ran(output)
    check_devices(work.device, output, device)
    del output
    kept = ballast(order.inject.get("peak_host_memory", 0.0))
    call = (
        slowed(work.call, order.inject["latency"], device)
        if "latency" in order.inject
        else work.call
    )
    session = Bursts(call, device)
    stage.enter("warmup")
    first_call_s = (called_ns - before_ns) / 1e9
    call_s = warm_up(session.unrecorded, first_call_s, order.warmup_s)
    stop_collecting()
    stage.enter("measure")
    channel.send("ready", call_s=call_s, **_on_device(device))
    _burst_as_ordered(session, channel)
    values, missing = memory.peaks(session.size(), session.once)
    del kept
    _add_device_metrics(values, missing, device, found)
    if not order.cold_start:
        missing |= dict.fromkeys(("cold_start", "import_time"), "both sides started at once")
    else:
        cold_compile = work.compiled and order.cold_cache
        _add_start(values, missing, start, None if cold_compile else started_ns)
    stage.enter("finish")
    measurement = Measurement(
        samples_ns=encoded(session.samples),
        device_samples_ns=encoded(session.device_samples),
        bursts=(),
        first_call_s=first_call_s,
        values=values,
        missing=missing,
        phases=start.phases(before_setup_ns - start.resumed_ns + before_ns - set_up_ns)
        | {
            "setup": (set_up_ns - before_setup_ns) / 1e9,
            "first_call": (started_ns - before_ns) / 1e9,
        },
        items=work.items,
        compiled=work.compiled,
        extra_metrics=tuple(extra.metric for extra in work.metrics),
    )
    measurement = finished(measurement, order, work, device, graphs, call_s)
    look()  # last of all: what a later call loads counts too
    channel.send("output", measurement=asdict(measurement))


def _on_device(device: Device | None) -> dict[str, Any]:
    """Begin its memory peaks anew, and return which card NVML may watch."""
    without = device.missing() if device else ()
    if device and "peak_device_memory" not in without:
        device.reset_peaks()
    known_to_nvml = device is not None and "energy" not in without
    return {"on_device": known_to_nvml, "uuid": device.uuid() if device and known_to_nvml else ""}


def _check_ran(output: object) -> None:
    """Raise Unusable where the call made something that runs only later: nothing was timed."""
    for kind, article, advice in _RUNS_LATER:
        if isinstance(output, kind):
            if isinstance(output, (CoroutineType, GeneratorType)):
                output.close()  # Python would complain that it was never awaited
            raise Unusable("nothing_ran", f"the work returned {article}; nothing ran: {advice}")


def _burst_as_ordered(session: Bursts, channel: Channel) -> None:
    while line := channel.receive():
        command = json.loads(line)
        if command["do"] == "finish":
            return
        burst = session.run(command["seconds"], command["least"], command["lead_in"])
        channel.send("burst", **asdict(burst))
    os._exit(0)  # the parent is gone


def _start_ended(start: Start, called_ns: int, share: float) -> int:
    """When the first call had ended, and what is injected into the start was waited for.

    That is no part of the first call's own time, of which compile time is made.
    """
    wait_longer(start.until(called_ns), share)
    return time.monotonic_ns() if share else called_ns


def _add_start(
    values: dict[str, float], missing: dict[str, str], start: Start, started_ns: int | None
) -> None:
    """``started_ns`` is when the start had ended, or None where the first call compiled anew."""
    values["import_time"] = start.imports()
    if started_ns is None:
        missing["cold_start"] = "the compile cache was empty"
    else:
        values["cold_start"] = start.until(started_ns)


def _add_device_metrics(
    values: dict[str, float], missing: dict[str, str], device: Device | None, found: Sequence[Kind]
) -> None:
    """torch answers 0 where there is no device: that is not measured, not zero."""
    if device is None:
        missing |= dict.fromkeys(OF_A_DEVICE, why_on_host(found))
        return
    without = device.missing()
    missing |= {metric: why for metric, why in without.items() if metric in OF_A_DEVICE}
    if "peak_device_memory" not in without:
        values |= device.peaks()


def _fix_threads_and_seed(order: WorkOrder, *, seed: bool = True) -> None:
    """Set-up may import torch for the first time: threads are fixed before and after it."""
    torch = sys.modules.get("torch")
    if seed:
        random.seed(order.seed)
    if torch is not None:
        if seed:
            torch.manual_seed(order.seed)
        if "OMP_NUM_THREADS" in os.environ:
            torch.set_num_threads(order.threads)


def _watch_graphs(work: Work) -> GraphWatch | None:
    if not work.compiled:
        return None
    from perfci.worker.graphs import GraphWatch

    watch = GraphWatch()
    watch.install()
    return watch
