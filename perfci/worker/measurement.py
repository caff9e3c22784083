"""Measures one case: sets up, makes a first call, warms up, and then does what the parent orders.

An order's ``inject`` makes head slower or larger by shares, to show that the gate notices. The time
is really spent and the memory really taken. Base runs the same code with shares of zero.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfci.clock import monotonic_ns, perf_counter_ns
from perfci.collector import Work
from perfci.errors import Unusable
from perfci.metrics import NOTHING, MetricGroup, Observation, Reading, Scene, metric_groups
from perfci.metrics.graphs import frames_traced, generated_code
from perfci.metrics.observed.allocator import have_children_give_back
from perfci.metrics.observed.processes import resident
from perfci.model import inherited
from perfci.model.case import Metric
from perfci.model.worker import MOST_FIRST_CALLS, UNLIKE_FRESH, Measurement, WorkOrder
from perfci.worker.bursts import Bursts, Garbage, StrayCopies, encoded, warm_up
from perfci.worker.calls import require_ended, require_ran
from perfci.worker.devices import BurstDevice, DeviceKind, check_output, kinds, members, named, used
from perfci.worker.imports import require_same_environment
from perfci.worker.loading import seed_random, set_up

if TYPE_CHECKING:
    from perfci.api.definition import Benchmark
    from perfci.worker.protocol import Channel

_LONGEST_REASON = 500
_PAGE = b"\1"  # not zero: for zeros, the kernel would not allocate memory


@dataclass(frozen=True, slots=True)
class StartClock:
    """A worker's start up to the end of its imports, in ns of the monotonic clock.

    ``spawned_ns`` is when its process, or its fork server's, was spawned. The interpreter, the
    benchmark file's imports and the compiler's import took the other times. ``waited_ns`` is how
    long the fork server then waited for the worker's fork, which isn't part of the start.
    """

    spawned_ns: int
    interpreter_ns: int
    imports_ns: int = 0
    compiler_ns: int = 0
    waited_ns: int = 0

    def until(self, now_ns: int) -> float:
        """Return the length of the start in s if it ends at ``now_ns``."""
        return (now_ns - self.spawned_ns - self.waited_ns) / 1e9


def measure(
    order: WorkOrder, channel: Channel, start: StartClock, benchmarks: Sequence[Benchmark]
) -> Measurement:
    """Measure the order's case, with blocks of bursts as the parent orders them."""
    have_children_give_back()
    measuring = _Measuring(order, channel, start)
    made: list[Measurement] = []

    def measure_work(work: Work) -> Sequence[float]:
        made.append(measuring.measurement_of(work))
        return [ns / 1e9 for samples in measuring.samples for ns in samples]

    set_up(order, benchmarks, measure_work)
    measuring.copies.require_none_at_last()
    return made[0]


class _Measuring:
    """Measures a case, from the beginning of its set-up."""

    def __init__(self, order: WorkOrder, channel: Channel, start: StartClock) -> None:
        self._order = order
        self._channel = channel
        self._start = start
        self._kinds = kinds(order.devices)
        seed_random(order.seed)
        self.copies = StrayCopies()
        self.samples: Sequence[array[int]] = ()
        channel.enter("setup")
        self._garbage = Garbage()
        self._scene = Scene(order, self._garbage.collect)
        self._collectors = _Collectors(self._scene)
        self._collectors.take("before_setup")
        self._traced, self._before_setup_ns = frames_traced(), monotonic_ns()
        self._environment = dict(os.environ)

    def measurement_of(self, work: Work) -> Measurement:
        """Measure the work that set-up made just now."""
        scene, channel = self._scene, self._channel
        if self._start.compiler_ns:
            require_same_environment(self._environment)
        self.copies.require_none()
        if work.prepare:
            work.prepare()  # the first call's preparation belongs to the set-up
        set_up_ns = monotonic_ns()
        scene.work = work
        scene.compiled = lambda: work.compiled or frames_traced() > self._traced
        self._collectors.take("set_up")
        first = self._first_call(work)
        kept = self._injected_memory()
        session = self._bursts_of(work, first.device)
        channel.enter("warmup")
        early = self._warm_up(session, first.took_s)
        self.copies.require_none()
        self._garbage.freeze(1)  # older objects are the imports', of which few are garbage
        channel.enter("measure")
        self._collectors.take("warm")
        # of the cards that NVML may watch
        uuids = [card.uuid() for card in members(first.device) if hasattr(card, "uuid")]
        limit = {"most_calls": work.most_calls} if work.most_calls else {}
        channel.send("ready", call_s=scene.call_s, on_device=bool(uuids), uuids=uuids, **limit)
        self._blocks_as_ordered(session)
        self._collectors.take("after_bursts")
        del kept
        channel.enter("finish")
        self._collectors.take("more_calls")
        self._collectors.take("last")
        reading = self._collectors.reading
        return Measurement(
            samples_ns=tuple(map(encoded, session.samples)),
            device_samples_ns=tuple(map(encoded, session.device_samples)),
            blocks=(),
            first_call_s=first.took_s,
            **inherited(Reading, reading),
            phases=self._phases(set_up_ns, first),
            items=work.items,
            compiled=first.compiled,
            results=reading.results,
            generated_code=self._generated_code(first),
            first_calls=tuple(taken / 1e9 for taken in early),
            observed_ns={
                name: encoded(array("q", [int(second * 1e9) for second in seconds]))
                for name, seconds in reading.calls.items()
            },
            extra_metrics=(*(each.metric for each in work.metrics), *self._collectors.of_others()),
        )

    def _injected_memory(self) -> bytes:
        share = self._order.inject.get("peak_host_memory", 0.0)
        return _PAGE * int((resident("VmRSS") or 0) * share)  # every page of it is touched

    def _bursts_of(self, work: Work, device: BurstDevice | None) -> Bursts:
        """Return the bursts of the work, which the scene shows to the collectors."""
        call, scene = work.call, self._scene
        if "latency" in self._order.inject:
            call = slowed(call, self._order.inject["latency"], device)
        session = Bursts(call, device, self.copies, self._garbage, prepare=work.prepare)
        self.samples = session.samples
        scene.once, scene.samples_bytes = session.once, session.size
        scene.calls, scene.busy_share = lambda: session.calls, session.busy_share
        return session

    def _first_call(self, work: Work) -> _FirstCall:
        """Make the first call, wait for its end, and check that it ran, and on which device."""
        self._channel.enter("first_call")
        traced = frames_traced()
        before_ns = monotonic_ns()
        output, device = call_once(work, self._kinds)
        compiled = work.compiled or frames_traced() > traced
        inject = self._order.inject
        if compiled:
            time.sleep((monotonic_ns() - before_ns) / 1e9 * inject.get("compile_time", 0.0))
        called_ns = started_ns = monotonic_ns()
        if share := inject.get("cold_start", 0.0):  # isn't part of the first call's own time
            time.sleep(self._start.until(called_ns) * share)
            started_ns = monotonic_ns()
        require_ran(output)
        if work.device:
            check_output(work.device, output)
        scene = self._scene
        self._collectors.take("called", output)
        del output
        self.copies.require_none()
        if self._start.compiler_ns and not scene.compiled():
            # a fresh process would not have imported the compiler, which this process has
            raise Unusable(UNLIKE_FRESH, "set-up and the first call compiled nothing")
        scene.peak_at_start = resident("VmHWM")
        scene.device = device
        if not device:
            there = any(kind.present() for kind in self._kinds)
            scene.why_no_device = (
                "it ran on the host, not on an accelerator" if there else "no accelerator"
            )
        scene.imports = self._start.imports_ns / 1e9
        scene.start = self._start.until(started_ns) - work.spared_s
        return _FirstCall(before_ns, started_ns, (called_ns - before_ns) / 1e9, device, compiled)

    def _warm_up(self, session: Bursts, first_s: float) -> array[int]:
        """Warm up, and return the samples of the first calls, in ns."""
        early = array("q", [int(first_s * 1e9)])

        def warm(samples: array[int], seconds: float) -> None:
            session.warm(samples, seconds)
            self._garbage.collect(1)
            early.extend(samples[: max(0, MOST_FIRST_CALLS - len(early))])

        self._garbage.stop()
        most_s = longest_warmup_s(self._order, self._scene.work)
        self._scene.call_s = warm_up(warm, first_s, most_s) + session.preparing_s
        return early

    def _blocks_as_ordered(self, session: Bursts) -> None:
        for order in self._channel.orders():
            if order["do"] == "stop":  # for a block that has ended meanwhile
                continue
            if order["collector"] == "python":
                self._garbage.leave_to_python()
            turn = self._channel.turn(**order["turn"]) if order["turn"] else None
            block = session.block(order["lead_ins"], order["calls"], turn)
            self._channel.send("block", **asdict(block))

    def _generated_code(self, first: _FirstCall) -> str:
        """Return the digest of what was compiled, if all of it was and nothing slows it down."""
        order = self._order
        if not (first.compiled and order.cold_cache) or order.inject.get("compile_time"):
            return ""
        return generated_code(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]))

    def _phases(self, set_up_ns: int, first: _FirstCall) -> dict[str, float]:
        """Return the phases of the cold start, in s."""
        start = self._start
        imported_ns = start.interpreter_ns + start.imports_ns + start.compiler_ns
        harness_ns = first.before_ns - set_up_ns - imported_ns
        compiler = {"compiler": start.compiler_ns / 1e9} if start.compiler_ns else {}
        return {
            "interpreter": start.interpreter_ns / 1e9,
            "harness": start.until(self._before_setup_ns) + harness_ns / 1e9,
            "imports": start.imports_ns / 1e9,
            **compiler,
            "setup": (set_up_ns - self._before_setup_ns) / 1e9 - self._scene.work.spared_s,
            "first_call": (first.started_ns - first.before_ns) / 1e9,
        }


@dataclass(frozen=True, slots=True)
class _FirstCall:
    """The first call. It began at ``before_ns``, took ``took_s`` and ran on ``device``.

    The worker's start ended at ``started_ns``, after time that ``inject`` may add. ``compiled``
    tells whether torch.compile had a part in the call, whatever called torch.compile.
    """

    before_ns: int
    started_ns: int
    took_s: float
    device: BurstDevice | None
    compiled: bool


def call_once(work: Work, kinds: Sequence[DeviceKind]) -> tuple[Any, BurstDevice | None]:
    """Make the first call and wait for its end. Return its output, and the device it ran on."""
    device = named(kinds, work.device) if work.device else None
    output = work.call()
    require_ended(output)  # checked at once, before the output's work can end meanwhile
    if device or not work.device:
        device = used(kinds, output, device)
    if device:
        device.synchronize()
    return output, device


def longest_warmup_s(order: WorkOrder, work: Work) -> float:
    """Return the longest warm-up of this work, in s. Work whose calls are limited has none."""
    return 0.0 if work.most_calls else order.warmup_s


class _Collectors:
    """The collectors of a worker, in the order of reports. ``reading`` joins their readings.

    A collector that breaks is left out from then on, and its metrics are missing. The case goes on.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._collectors = [(group, group.collector(scene)) for group in metric_groups()]
        self.reading = Observation()

    def take(self, hook: str, *given: Any) -> None:
        """Call a hook of each collector, and join the readings it returns."""
        for group, collector in tuple(self._collectors):
            try:
                reading = getattr(collector, hook)(*given) or NOTHING
            except Unusable:
                raise
            except Exception as error:  # noqa: BLE001 (whatever it is, it's reported)
                self._scene.once()  # raises if it is the work that fails
                self._collectors.remove((group, collector))
                reading = _broken(group, reason_of(error))
            self.reading = self.reading.joined(reading)

    def of_others(self) -> tuple[Metric, ...]:
        """Return the metrics of other distributions that have a value."""
        groups = [group for group, _ in self._collectors if group.distribution]
        known = self.reading.values
        return tuple(each for group in groups for each in group.metrics if each.name in known)


def _broken(group: MetricGroup, why: str) -> Reading:
    """Return the reading of a group whose collector broke."""
    names = [metric.name for metric in group.metrics]
    warning = f"{', '.join(names)} could not be measured: {why}"
    return Reading(missing=dict.fromkeys(names, why), warnings=(warning,))


def reason_of(error: Exception) -> str:
    """Return why a metric or an instrument failed, in one line."""
    first = (str(error).strip().splitlines() or [""])[0]
    kind = "" if isinstance(error, Unusable) else f"{type(error).__name__}: "
    return f"{kind}{first}"[:_LONGEST_REASON]


def slowed(call: Callable[[], Any], share: float, device: BurstDevice | None) -> Callable[[], Any]:
    """Return a function that makes ``call``, then spins on the host for ``share`` of its time.

    The spin's resolution is about 0.1 µs. If the work runs on a device, the spin begins only when
    the work has ended: its time is known only then, and the spin would otherwise run while the
    device still works.
    """
    wait = device.synchronize if device else None

    def spun() -> Any:
        started = perf_counter_ns()
        output = call()
        if wait:
            wait()
        ended = perf_counter_ns()
        deadline = ended + int((ended - started) * share)
        while perf_counter_ns() < deadline:
            pass
        return output

    return spun
