"""Measuring one case: set-up, first call, warm-up, bursts as ordered, then what is slow to know."""

from __future__ import annotations

import base64
import gc
import os
import random
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfci.bench.work import Work
from perfci.record.worker import Burst, Measurement, WorkOrder
from perfci.worker.afterwards import finished
from perfci.worker.building import Unusable, builder, built_work
from perfci.worker.device import Cuda, devices_of, open_device
from perfci.worker.memory import host_memory, reset_peak
from perfci.worker.timing import burst, synchronised_burst
from perfci.worker.warmup import warm_up

if TYPE_CHECKING:
    from perfci.worker.graphs import GraphWatch
    from perfci.worker.main import Stage
    from perfci.worker.protocol import Channel

_SCHEDSTAT = Path("/proc/self/schedstat")


def measure(
    order: WorkOrder,
    channel: Channel,
    stage: Stage,
    spawned_ns: int,
    started_ns: int,
    harness_ns: int,
) -> None:
    """Measure the order's case; bursts are made as the parent asks for them."""
    stage.enter("import")
    build = builder(order)
    imported_ns = time.monotonic_ns()
    _fix_threads_and_seed(order)
    stage.enter("setup")
    work = built_work(build)
    set_up_ns = time.monotonic_ns()
    graphs = _watch_graphs(work)
    _fix_threads_and_seed(order, seed=False)
    stage.enter("first_call")
    before_ns = time.monotonic_ns()
    output = work.call()
    device = open_device(work.device, output)
    if device:
        device.synchronize()
    called_ns = time.monotonic_ns()
    _check_device(work, output)
    del output
    session = _Bursts(work.call, device)
    stage.enter("warmup")
    first_call_s = (called_ns - before_ns) / 1e9
    call_s = warm_up(session.unrecorded, first_call_s, order.warmup_s)
    resident = host_memory("VmRSS")
    _quieten()
    peak_missing = reset_peak()
    if device:
        device.reset_peaks()
    stage.enter("measure")
    channel.send("ready", call_s=call_s)
    while (command := channel.receive()) is not None and command["do"] == "burst":
        channel.send("burst", **asdict(session.run(command["seconds"], command["least"])))
    if command is None:
        os._exit(0)  # the parent is gone
    values, missing = _peaks(device, resident, peak_missing)
    values["import_time"] = (imported_ns - harness_ns) / 1e9
    if work.compiled and order.cold_cache:
        missing["cold_start"] = "the compile cache was empty"
    else:
        values["cold_start"] = (called_ns - spawned_ns) / 1e9
    stage.enter("finish")
    measurement = Measurement(
        samples_ns=_encoded(session.samples),
        device_samples_ns=_encoded(session.device_samples),
        bursts=(),
        first_call_s=first_call_s,
        values=values,
        missing=missing,
        phases={
            "interpreter": (started_ns - spawned_ns) / 1e9,
            "harness": (harness_ns - started_ns) / 1e9,
            "imports": (imported_ns - harness_ns) / 1e9,
            "setup": (set_up_ns - imported_ns) / 1e9,
            "first_call": first_call_s,
        },
        items=work.items,
        compiled=work.compiled,
        extra_metrics=tuple(extra.metric for extra in work.metrics),
    )
    channel.send(
        "output", measurement=asdict(finished(measurement, order, work, device, graphs, call_s))
    )


def _peaks(
    device: Cuda | None, resident: int, peak_missing: str
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the memory peaks of the bursts, and why one is missing."""
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    if peak_missing:
        missing["peak_host_memory"] = peak_missing
    else:
        peak = host_memory("VmHWM")
        values["peak_host_memory"] = float(peak)
        values["host_memory_over_setup"] = float(peak - resident)
    if device:
        values |= device.peaks()
    else:
        missing["peak_device_memory"] = "no CUDA device"
        missing["peak_device_memory_reserved"] = "no CUDA device"
    return values, missing


class _Bursts:
    """The bursts of one worker and their samples."""

    def __init__(self, call: Callable[[], Any], device: Cuda | None) -> None:
        self._call = call
        self._device = device
        self.samples: array[int] = array("q")
        self.device_samples: array[int] = array("q")

    def unrecorded(self, samples: array[int], seconds: float) -> int:
        """Run one burst into ``samples``, for warming up."""
        if self._device:
            return synchronised_burst(self._call, samples, array("q"), self._device, seconds, 1)
        return burst(self._call, samples, seconds, 1)

    def run(self, seconds: float, least: int) -> Burst:
        """Run one burst as ordered."""
        delay = _run_delay_ns()
        started = time.monotonic_ns()
        if self._device:
            count = synchronised_burst(
                self._call, self.samples, self.device_samples, self._device, seconds, least
            )
        else:
            count = burst(self._call, self.samples, seconds, least)
        ended = time.monotonic_ns()
        return Burst(
            samples=count,
            started=started / 1e9,
            duration=(ended - started) / 1e9,
            run_delay=(_run_delay_ns() - delay) / 1e9,
        )


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


def _check_device(work: Work, output: Any) -> None:
    expected = work.device.split(":")[0]
    others = devices_of(output) - {expected}
    if expected and others:
        raise Unusable(
            "wrong_device",
            f"the work runs on {expected}, but its output is on {', '.join(sorted(others))}: it "
            "could not be synchronised; pass device= or move the output inside the benchmark",
        )
    if not expected and (strange := devices_of(output) - {"cpu", "cuda"}):
        raise Unusable(
            "wrong_device", f"perfci can't synchronise with {', '.join(sorted(strange))}"
        )


def _quieten() -> None:
    if os.environ.get("PERFCI_GC") != "1":
        gc.collect()
        gc.freeze()
        gc.disable()


def _run_delay_ns() -> int:
    """Return how long this process was runnable but kept off its core, since it began."""
    try:
        return int(_SCHEDSTAT.read_text(encoding="ascii").split()[1])
    except FileNotFoundError:  # a kernel without CONFIG_SCHED_INFO
        return 0


def _encoded(samples: array[int]) -> str:
    if sys.byteorder == "big":
        samples = array("q", samples)
        samples.byteswap()
    return base64.b64encode(samples.tobytes()).decode("ascii")
