"""Measuring one case: set-up, first call, warm-up, bursts as ordered, then what is slow to know."""

from __future__ import annotations

import base64
import gc
import math
import os
import random
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfci.bench.work import ExtraMetric, Work
from perfci.errors import BenchmarkError
from perfci.record.worker import Burst, Measurement, WorkOrder
from perfci.worker.device import Cuda, devices_of, open_device
from perfci.worker.loading import benchmarks_in, load
from perfci.worker.memory import host_memory, reset_peak
from perfci.worker.timing import burst, synchronised_burst
from perfci.worker.warmup import warm_up

if TYPE_CHECKING:
    from perfci.worker.graphs import GraphWatch
    from perfci.worker.main import Stage
    from perfci.worker.protocol import Channel

_SCHEDSTAT = Path("/proc/self/schedstat")


class Unusable(Exception):
    """What the benchmark returned can't be measured; ``kind`` is the failure's."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


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
    build = _builder(order)
    imported_ns = time.monotonic_ns()
    _fix_threads_and_seed(order)
    stage.enter("setup")
    work = _work(build)
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
    values: dict[str, float] = {"import_time": (imported_ns - harness_ns) / 1e9}
    missing: dict[str, str] = {}
    if peak_missing:
        missing["peak_host_memory"] = peak_missing
    else:
        values["peak_host_memory"] = float(host_memory("VmHWM"))
        values["host_memory_over_setup"] = float(host_memory("VmHWM") - resident)
    if device:
        values |= device.peaks()
    else:
        missing["peak_device_memory"] = "no CUDA device"
        missing["peak_device_memory_reserved"] = "no CUDA device"
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
    channel.send("output", measurement=asdict(_finished(measurement, order, work, device, graphs, call_s)))


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


def _builder(order: WorkOrder) -> Callable[[], Any]:
    """Return the benchmark at the order's point of its axes, ready to be called for set-up."""
    if not order.benchmark_file:
        for saved in order.saved:
            for mode in saved.modes:
                if order.case == f"{saved.name}[mode={mode}]":
                    from perfci.bench.saved import saved_work

                    return lambda: saved_work(saved, mode)
    else:
        for benchmark in benchmarks_in(load(order.benchmark_file)):
            for point in benchmark.points():
                if point.id == order.case:
                    return lambda: _checked(benchmark, benchmark.function(**point.values))
    raise Unusable("no_such_case", f"`{order.case}` is not in {order.benchmark_file}")


def _checked(benchmark: Any, made: Any) -> Any:
    first = made[0] if isinstance(made, tuple) and made else made
    if isinstance(first, Work) or callable(first):
        return made
    what = "nothing" if made is None else repr(made)[:80]
    raise Unusable(
        "nothing_returned" if made is None else "not_callable",
        f"{benchmark.file}:{benchmark.line}: `{benchmark.name}` returned {what}; return the "
        "callable to measure: `return lambda: model(x)`, or perfci.inference(model, x)",
    )


def _work(build: Callable[[], Any]) -> Work:
    made = build()
    call, *extras = made if isinstance(made, tuple) else (made,)
    for extra in extras:
        if not isinstance(extra, ExtraMetric):
            raise Unusable("not_a_metric", f"{extra!r} beside the work is no perfci.metric(...)")
    work = call if isinstance(call, Work) else Work(call)
    return replace(work, metrics=(*work.metrics, *extras))


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


def _finished(
    measurement: Measurement,
    order: WorkOrder,
    work: Work,
    device: Cuda | None,
    graphs: GraphWatch | None,
    call_s: float,
) -> Measurement:
    """Add what would disturb the bursts: growth, accuracy, graphs, the benchmark's own metrics."""
    values, missing = dict(measurement.values), dict(measurement.missing)
    warnings: list[str] = []
    events: tuple[Any, ...] = ()
    _grow(values, missing, order, work, device, call_s)
    _judge_accuracy(values, missing, order, work)
    if graphs:
        counted, uncounted, events, said = graphs.summary(order.root)
        values |= counted
        missing |= uncounted
        warnings += said
    else:
        missing |= dict.fromkeys(("graph_breaks", "recompiles", "graphs"), "not compiled")
    for extra in work.metrics:
        value = float(extra.measure())
        if math.isfinite(value):
            values[extra.metric.name] = value
        else:
            missing[extra.metric.name] = f"the benchmark gave {value}"
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
    device: Cuda | None,
    call_s: float,
) -> None:
    from perfci.worker.growth import host_allocated, memory_growth

    if not order.growth:
        return
    allocated = device.allocated if device else host_allocated()
    if allocated is None:
        missing["memory_growth"] = "this C library doesn't tell what is allocated"
        return
    growth = memory_growth(work.call, call_s, allocated)
    if growth is None:
        missing["memory_growth"] = f"a call of {call_s:.2g} s is too slow for ten points"
    else:
        values["memory_growth"] = growth


def _judge_accuracy(
    values: dict[str, float], missing: dict[str, str], order: WorkOrder, work: Work
) -> None:
    if work.accuracy is None:
        missing["accuracy_loss"] = "only inference and training steps have a reference"
        return
    if not order.accuracy:
        return
    from perfci.worker.accuracy import AccuracyMismatch, accuracy_loss

    try:
        candidate, reference = work.accuracy()
        values["accuracy_loss"] = accuracy_loss(candidate, reference)
    except AccuracyMismatch as error:
        raise Unusable("accuracy", str(error)) from error
    except BenchmarkError:
        raise
    except ValueError as error:  # no reference can be had: said, not failed
        missing["accuracy_loss"] = str(error)
