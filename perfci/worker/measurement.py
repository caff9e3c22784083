"""Measuring one case: set-up, first call, warm-up, bursts as ordered, then what is slow to know.

Both sides get the same code; base's shares are zero, so that its own cost cancels. Nothing is
computed into a result: the time is really spent, the memory really taken.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from perfci.clock import monotonic_ns, perf_counter_ns
from perfci.collecting import Work
from perfci.metrics import NOTHING, Reading, Scene, families
from perfci.metrics.graphs import frames_traced
from perfci.metrics.observed.allocator import have_children_give_back
from perfci.metrics.observed.processes import resident
from perfci.model.case import Metric
from perfci.model.worker import MOST_FIRST_CALLS, Measurement, WorkOrder
from perfci.worker.bursts import Bursts, StrayCopies, collect, encoded, stop_collecting, warm_up
from perfci.worker.deferred import require_ended, require_ran
from perfci.worker.devices import (
    BurstDevice,
    DeviceKind,
    check_devices,
    kinds,
    named,
    on_host_reason,
    used,
)
from perfci.worker.imports import require_compiled, require_same_environment
from perfci.worker.loading import set_up
from perfci.worker.protocol import LoneTurn

if TYPE_CHECKING:
    from perfci.api.definition import Benchmark
    from perfci.worker.main import Stage, StartClock
    from perfci.worker.protocol import Channel

_PAGE = b"\1"  # of zeros, the kernel would give no page


def measure(
    order: WorkOrder,
    channel: Channel,
    stage: Stage,
    start: StartClock,
    benchmarks: Sequence[Benchmark],
    look: Callable[[], None] = lambda: None,
) -> None:
    """Measure the order's case; blocks of bursts are run as the parent orders.

    ``look`` is called once all of it has run, set-up's own end included.
    """
    have_children_give_back()
    build = set_up(order, benchmarks)
    device_kinds = kinds(order.devices)
    fix_threads_and_seed(order)
    copies = StrayCopies()
    stage.enter("setup")
    scene = Scene(order, collect)
    gathering = _Collectors(scene)
    gathering.before_setup()
    parts = _MeasuringParts(channel, stage, start, device_kinds, copies, scene, gathering)
    traced, before_ns = frames_traced(), monotonic_ns()
    made: list[Measurement] = []
    environment = dict(os.environ)

    def go_on(work: Work) -> None:
        if start.compiler_ns:
            require_same_environment(environment)
        made.append(_measurement(work, parts, traced, before_ns))

    build(go_on)
    copies.require_none_at_last()
    look()  # last of all: what a later call loads counts too
    channel.send("output", measurement=asdict(made[0]))


@dataclass(frozen=True, slots=True)
class _MeasuringParts:
    """The tools that one worker measures with."""

    channel: Channel
    stage: Stage
    start: StartClock
    kinds: Sequence[DeviceKind]
    copies: StrayCopies
    scene: Scene
    gathering: _Collectors


def _measurement(
    work: Work, parts: _MeasuringParts, traced: int, before_setup_ns: int
) -> Measurement:
    """Measure the work that set-up, begun at ``before_setup_ns``, made just now."""
    channel, stage, start = parts.channel, parts.stage, parts.start
    device_kinds, copies, scene, gathering = parts.kinds, parts.copies, parts.scene, parts.gathering
    order = scene.order
    copies.require_none()
    set_up_ns = monotonic_ns()
    scene.work = work
    scene.compiled = lambda: work.compiled or frames_traced() > traced
    gathering.at_set_up()
    device = named(device_kinds, work.device) if work.device else None
    fix_threads_and_seed(order, seed=False)
    stage.enter("first_call")
    first = _first_call(order, work, start, device_kinds, device)
    copies.require_none()
    if start.compiler_ns:
        require_compiled(compiled=scene.compiled())
    scene.device, scene.why_no_device = (
        first.device,
        "" if first.device else on_host_reason(device_kinds),
    )
    scene.imports, scene.start = start.imports(), start.until(first.started_ns)
    kept = ballast(order.inject.get("peak_host_memory", 0.0))
    call = _slowed(work.call, order, first.device)
    session = Bursts(call, first.device, copies, flush_l2=order.flush_l2)
    scene.once, scene.samples_bytes = session.once, session.size
    scene.calls, scene.busy_share = lambda: session.calls, session.busy_share
    stage.enter("warmup")
    early = array("q", [int(first.took_s * 1e9)])
    scene.call_s = warm_up(partial(_warm, session, early), first.took_s, order.warmup_s)
    copies.require_none()
    stop_collecting()
    stage.enter("measure")
    gathering.before_bursts()
    channel.send("ready", call_s=scene.call_s, **_on_device(first.device))
    _blocks_as_ordered(session, channel)
    gathering.after_bursts()
    del kept
    stage.enter("finish")
    gathering.finish()
    reading = gathering.reading
    return Measurement(
        samples_ns=tuple(map(encoded, session.samples)),
        device_samples_ns=tuple(map(encoded, session.device_samples)),
        blocks=(),
        first_call_s=first.took_s,
        values=reading.values,
        missing=reading.missing,
        phases=_phases(start, before_setup_ns, set_up_ns, first),
        items=work.items,
        compiled=first.compiled,
        graph_events=reading.events,
        warnings=reading.warnings,
        remarks=reading.remarks,
        first_calls=tuple(taken / 1e9 for taken in early),
        observed_ns={name: _encoded_ns(seconds) for name, seconds in reading.calls.items()},
        extra_metrics=(*(extra.metric for extra in work.metrics), *gathering.of_others()),
    )


@dataclass(frozen=True, slots=True)
class _FirstCall:
    """When it began and when the start had ended, how long it took, and the device it ran on.

    ``compiled``: torch.compile had a part in it, whoever called that.
    """

    before_ns: int
    started_ns: int
    took_s: float
    device: BurstDevice | None
    compiled: bool


def _phases(
    start: StartClock, before_setup_ns: int, set_up_ns: int, first: _FirstCall
) -> dict[str, float]:
    """Return the phases of the cold start, in s."""
    harness_ns = before_setup_ns - start.resumed_ns + first.before_ns - set_up_ns
    return start.phases(harness_ns) | {
        "setup": (set_up_ns - before_setup_ns) / 1e9,
        "first_call": (first.started_ns - first.before_ns) / 1e9,
    }


def _first_call(
    order: WorkOrder,
    work: Work,
    start: StartClock,
    kinds: Sequence[DeviceKind],
    device: BurstDevice | None,
) -> _FirstCall:
    """Make the first call, to its end, and check that it ran, and where."""
    traced = frames_traced()
    before_ns = monotonic_ns()
    output = work.call()
    require_ended(output)  # at once: what it waits for may end meanwhile
    if not work.device:
        device = used(kinds, output)
    if device:
        device.synchronize()
    compiled = work.compiled or frames_traced() > traced
    if compiled:
        wait_longer((monotonic_ns() - before_ns) / 1e9, order.inject.get("compile_time", 0.0))
    called_ns = monotonic_ns()
    started_ns = _start_ended(start, called_ns, order.inject.get("cold_start", 0.0))
    require_ran(output)
    check_devices(work.device, output, device)
    return _FirstCall(before_ns, started_ns, (called_ns - before_ns) / 1e9, device, compiled)


def _warm(session: Bursts, early: array[int], samples: array[int], seconds: float) -> None:
    """Make warm-up's calls, and keep the first of them in ``early``, in ns."""
    session.warm(samples, seconds)
    early.extend(samples[: max(0, MOST_FIRST_CALLS - len(early))])


def _slowed(
    call: Callable[[], Any], order: WorkOrder, device: BurstDevice | None
) -> Callable[[], Any]:
    return slowed(call, order.inject["latency"], device) if "latency" in order.inject else call


def _on_device(device: BurstDevice | None) -> dict[str, Any]:
    """Return which card NVML may watch."""
    known_to_nvml = device is not None and "energy" not in device.missing()
    return {"on_device": known_to_nvml, "uuid": device.uuid() if device and known_to_nvml else ""}


def _blocks_as_ordered(session: Bursts, channel: Channel) -> None:
    while line := channel.receive():
        order = json.loads(line)
        if order["do"] == "finish":
            return
        if order["do"] == "stop":  # of a block that has ended meanwhile
            continue
        turn = channel.turn(**order["turn"]) if order["turn"] else LoneTurn()
        block = session.block(order["bursts"], order["calls"], order["lead_in"], turn)
        channel.send("block", **asdict(block))
    os._exit(0)  # the parent is gone


def _start_ended(start: StartClock, called_ns: int, share: float) -> int:
    """When the first call had ended, and what is injected into the start was waited for.

    That is no part of the first call's own time, of which compile time is made.
    """
    wait_longer(start.until(called_ns), share)
    return monotonic_ns() if share else called_ns


def fix_threads_and_seed(order: WorkOrder, *, seed: bool = True) -> None:
    """Set-up may import torch for the first time: threads are fixed before and after it."""
    torch = sys.modules.get("torch")
    if seed:
        random.seed(order.seed)
    if torch is not None:
        if seed:
            torch.manual_seed(order.seed)
        if "OMP_NUM_THREADS" in os.environ:
            torch.set_num_threads(order.threads)


def _encoded_ns(seconds: Sequence[float]) -> str:
    return encoded(array("q", [int(second * 1e9) for second in seconds]))


# What the metrics' collectors find, hook by hook.
class _Collectors:
    """The collectors of a worker, in the order of reports, and all that they found so far."""

    def __init__(self, scene: Scene) -> None:
        self._collectors = [
            (family, family.ask("its COLLECTOR", partial(family.collector, scene)))
            for family in families()
        ]
        self.reading = NOTHING

    def before_setup(self) -> None:
        """Say that set-up is next."""
        for family, collector in self._collectors:
            family.ask("its before_setup", collector.before_setup)

    def at_set_up(self) -> None:
        """Say that set-up is done, and nothing was called yet."""
        for family, collector in self._collectors:
            family.ask("its set_up", collector.set_up)

    def before_bursts(self) -> None:
        """Say that bursts are next."""
        for family, collector in self._collectors:
            family.ask("its warm", collector.warm)

    def after_bursts(self) -> None:
        """Take what is known of the bursts."""
        for family, collector in self._collectors:
            self._take(family.read("its after_bursts", collector.after_bursts))

    def finish(self) -> None:
        """Take what would have disturbed the bursts, and at last what needs no more calls."""
        for family, collector in self._collectors:
            self._take(family.read("its more_calls", collector.more_calls))
        for family, collector in self._collectors:
            self._take(family.read("its last", collector.last))

    def of_others(self) -> tuple[Metric, ...]:
        """Return the metrics of other distributions that there are values of."""
        metrics = (
            declared
            for family, _ in self._collectors
            if family.distribution
            for declared in family.metrics
        )
        return tuple(metric for metric in metrics if metric.name in self.reading.values)

    def _take(self, reading: Reading) -> None:
        self.reading = self.reading.joined(reading)


def slowed(call: Callable[[], Any], share: float, device: BurstDevice | None) -> Callable[[], Any]:
    """Return ``call`` that takes ``share`` of its own time longer, spinning on the host.

    Resolves about 0.1 µs. On a device the work is waited for first: the time it takes is known
    only then, and a launch that runs ahead would hide the spin.
    """
    if device is None:

        def spun() -> Any:
            started = perf_counter_ns()
            output = call()
            ended = perf_counter_ns()
            deadline = ended + int((ended - started) * share)
            while perf_counter_ns() < deadline:
                pass
            return output

        return spun

    def spun_after_device() -> Any:
        started = perf_counter_ns()
        output = call()
        device.synchronize()
        ended = perf_counter_ns()
        deadline = ended + int((ended - started) * share)
        while perf_counter_ns() < deadline:
            pass
        return output

    return spun_after_device


def wait_longer(spent_s: float, share: float) -> None:
    """Wait for ``share`` of what was spent already."""
    if share:
        time.sleep(spent_s * share)


def ballast(share: float) -> bytes:
    """Return memory of ``share`` of what is resident now, every page of it touched."""
    return _PAGE * int((resident("VmRSS") or 0) * share)
