"""The worker's life: one order, carried out or failed, and the shortest way out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

from perfci.clock import monotonic_ns
from perfci.collecting import Work
from perfci.errors import Unusable
from perfci.instruments import Instrument, Recorded, RecordingScene, When, in_worker
from perfci.metrics import use
from perfci.metrics.graphs import frames_traced
from perfci.model.run import WRONG_CODE
from perfci.model.worker import UNLIKE_FRESH, WorkOrder
from perfci.worker.bursts import Bursts, StrayCopies, collect, stop_collecting, warm_up
from perfci.worker.devices import kinds, named, used
from perfci.worker.hook.perfci_watch.watch import CodeWatch, begin_in_worker
from perfci.worker.imports import torch_state, use_own_places
from perfci.worker.loading import imported, prepare_path, set_up
from perfci.worker.measurement import fix_threads_and_seed, measure
from perfci.worker.protocol import (
    Channel,
    WorkerDescriptors,
    decode_order,
    flush,
    kind_of,
    log,
    where_it_failed,
)

_LONGEST = 500


@dataclass(frozen=True, slots=True)
class StartClock:
    """Readings of the monotonic clock, in ns, from the spawn to the end of the imports.

    ``resumed_ns`` is when the worker went on: at once, or when the process that it was forked from
    did that. What lies between is waiting, and is no part of any start. A worker of an ancestor
    makes imports of its own then, from ``again_ns`` to ``own_ns``; others make none. An ancestor's
    import of the compiler took ``compiler_ns``, at the end of its imports.
    """

    spawned_ns: int
    started_ns: int
    harness_ns: int
    imported_ns: int
    resumed_ns: int
    again_ns: int = 0
    own_ns: int = 0
    compiler_ns: int = 0

    def until(self, now_ns: int) -> float:
        """Return the time in s from the spawn to ``now_ns``, waiting left out."""
        return (now_ns - self.spawned_ns - (self.resumed_ns - self.imported_ns)) / 1e9

    def imports(self) -> float:
        """Return how long the file's imports took, in s: those before the fork, and its own."""
        before_ns = self.imported_ns - self.harness_ns - self.compiler_ns
        return (before_ns + self.own_ns - self.again_ns) / 1e9

    def phases(self, later_harness_ns: int) -> dict[str, float]:
        """Return the phases up to the imports, in s; the harness's own work goes on after them.

        ``later_harness_ns`` counts from when the worker went on, its own imports included.
        """
        harness_ns = self.harness_ns - self.started_ns + later_harness_ns
        return {
            "interpreter": (self.started_ns - self.spawned_ns) / 1e9,
            "harness": (harness_ns - (self.own_ns - self.again_ns)) / 1e9,
            "imports": self.imports(),
        } | ({"compiler": self.compiler_ns / 1e9} if self.compiler_ns else {})


def main(ends: WorkerDescriptors, spawned_ns: int, started_ns: int) -> NoReturn:
    """Serve the order of a fresh process: discovery, one case, or forks."""
    _live(ends, partial(_serve, spawned_ns, started_ns))


def _live(ends: WorkerDescriptors, serve: Callable[[WorkOrder, Channel], None]) -> NoReturn:
    """Serve one order and leave by ``os._exit``: an interpreter's exit with torch costs 0.4 s."""
    channel = Channel(ends)
    line = channel.receive()
    if not line:
        os._exit(0)
    order = decode_order(line)
    code = 0
    try:
        serve(order, channel)
    except BaseException as error:  # noqa: BLE001 (user code may raise anything: reported, not hidden)
        log(error)  # first: the parent cuts the log when it gets the message
        channel.send(
            "failed",
            stage=channel.stage,
            kind=kind_of(error),
            message=where_it_failed(error, (order.root,)),
        )
        code = 1
    flush()
    os._exit(code)


def _serve(spawned_ns: int, started_ns: int, order: WorkOrder, channel: Channel) -> None:
    """Carry out ``order`` in a fresh process, whatever it asks for."""
    if order.preload is not None:
        _become_ancestor(spawned_ns, started_ns, order, channel)
        return
    prepare_path(order.python_path)
    watch = begin_in_worker(os.environ)
    if not (order.case or order.fork_socket >= 0):
        _discover(order, channel, watch)
        return
    use(order.metrics)
    if order.instruments:
        look_inside(order, channel)
        return
    harness_ns = monotonic_ns()
    channel.enter("import")
    benchmarks = imported(order)
    imported_ns = monotonic_ns()
    start = StartClock(spawned_ns, started_ns, harness_ns, imported_ns, resumed_ns=imported_ns)
    if order.case:
        measure(order, channel, start, benchmarks, partial(_look, watch))
        return
    from perfci.worker.starter import serve_forks

    def measure_case(forked_ns: int, order: WorkOrder, channel: Channel) -> None:
        if watch:
            watch.go_on(os.environ)
        forked = replace(start, resumed_ns=forked_ns)
        measure(order, channel, forked, benchmarks, partial(_look, watch))

    serve_forks(order, channel, _become(measure_case), {})


def _become_ancestor(spawned_ns: int, started_ns: int, order: WorkOrder, channel: Channel) -> None:
    """Import what the sides have in common; each worker goes on as its own side's."""
    use(order.metrics)
    from perfci.worker.starter import import_libraries, serve_forks

    harness_ns = monotonic_ns()
    channel.enter("import")
    answer, compiler_ns = import_libraries(order)
    imported_ns = monotonic_ns()
    common = StartClock(
        spawned_ns,
        started_ns,
        harness_ns,
        imported_ns,
        imported_ns,
        compiler_ns=compiler_ns if order.compiler else 0,
    )

    def import_and_measure(forked_ns: int, order: WorkOrder, channel: Channel) -> None:
        os.chdir(order.root)
        prepare_path(order.python_path)
        watch = begin_in_worker(os.environ)
        use_own_places()
        channel.enter("import")
        again_ns = monotonic_ns()
        benchmarks = imported(order)
        own_ns = monotonic_ns()
        _require_fresh_state(order.fresh_state, torch_state())
        start = replace(common, resumed_ns=forked_ns, again_ns=again_ns, own_ns=own_ns)
        measure(order, channel, start, benchmarks, partial(_look, watch))

    serve_forks(order, channel, _become(import_and_measure), answer)


def _become(
    serve: Callable[[int, WorkOrder, Channel], None],
) -> Callable[[WorkerDescriptors, int], NoReturn]:
    """Return a function that serves one case in a process that was just forked."""
    return lambda ends, forked_ns: _live(ends, partial(serve, forked_ns))


def _discover(order: WorkOrder, channel: Channel, watch: CodeWatch | None) -> None:
    channel.enter("import")
    from perfci.worker.discovery import discover

    discovery = discover(order)
    _look(watch)
    channel.send("discovery", discovery=discovery)


def _require_fresh_state(fresh: Mapping[str, str], state: Mapping[str, str]) -> None:
    """Raise Unusable where torch is not set as in a fresh process of this side."""
    for name, value in fresh.items():
        if state.get(name) != value:
            raise Unusable(
                UNLIKE_FRESH,
                f"torch's {name} is {state.get(name)} after the imports, and {value} in a fresh "
                "process",
            )


def _look(watch: CodeWatch | None) -> None:
    """Look at all that is loaded, where this worker is watched, and see that it is written down."""
    if watch is None:
        return
    watch.look()
    if why := watch.record.unwritten():
        raise Unusable(
            WRONG_CODE,
            f"what this worker ran isn't known: it could not be written down ({why})\n"
            "Leave the session's files (below TMPDIR's parent) as they are, with room to grow.",
        )


def look_inside(order: WorkOrder, channel: Channel) -> None:
    """Run the order's case, nothing of it timed, and record what its instruments see."""
    scene = RecordingScene(order)
    recordings = _Recordings(scene, {name: in_worker(name) for name in order.instruments})
    channel.enter("import")
    device_kinds = kinds(order.devices)
    with ExitStack() as starting:
        starting.enter_context(recordings.during("start"))
        benchmarks = imported(order)
        fix_threads_and_seed(order)
        channel.enter("setup")
        traced = frames_traced()

        def go_on(work: Work) -> None:
            fix_threads_and_seed(order, seed=False)
            copies = StrayCopies()
            scene.call, scene.set_up = work.call, True
            channel.enter("first_call")
            device = named(device_kinds, work.device) if work.device else None
            with recordings.during("first_call"):
                called_ns = monotonic_ns()
                output = work.call()
                device = device or used(device_kinds, output)
                if device:
                    device.synchronize()
                first_s = (monotonic_ns() - called_ns) / 1e9
                del output
            starting.close()
            copies.require_none()
            scene.device, scene.compiled = device, work.compiled or frames_traced() > traced
            bursts = Bursts(work.call, device, copies)
            scene.once = bursts.once
            channel.enter("warmup")
            recordings.take_early()
            scene.call_s = warm_up(bursts.warm, first_s, order.warmup_s)
            stop_collecting()
            channel.enter("record")
            channel.send("ready", call_s=scene.call_s)
            _record_as_ordered(channel, recordings, copies)

        set_up(order, benchmarks)(go_on)


def _record_as_ordered(channel: Channel, recordings: _Recordings, copies: StrayCopies) -> None:
    while line := channel.receive():
        request = json.loads(line)
        if request["do"] == "finish":
            return
        collect()
        recorded, why = recordings.taken(request["instrument"])
        copies.require_none()
        channel.send("record", recorded=recorded, why=why)
    os._exit(0)  # the parent is gone


class _Recordings:
    """The recordings of a worker. An instrument that fails leaves the case and the others alone."""

    def __init__(self, scene: RecordingScene, chosen: Mapping[str, Instrument]) -> None:
        self._scene = scene
        self._chosen = chosen
        self._kept: dict[str, Recorded] = {}
        self._why: dict[str, str] = {}

    @contextmanager
    def during(self, when: When) -> Iterator[None]:
        """Record until the block ends; the last instrument that begins is the first that ends."""
        begun: list[tuple[str, Any]] = []
        for name, instrument in self._of(when):
            with self._failure_kept(name):
                context = instrument.record(self._scene)
                self._kept[name] = context.__enter__()
                begun.append((name, context))
        yield
        for name, context in reversed(begun):
            with self._failure_kept(name):
                context.__exit__(None, None, None)

    def take_early(self) -> None:
        """Record what has to be seen before the work is warm."""
        for name, instrument in self._of("early"):
            with self._failure_kept(name):
                self._kept[name] = instrument.record(self._scene)

    def taken(self, name: str) -> tuple[Recorded, str]:
        """Return a recording, made now or before, or why there is no recording."""
        instrument = self._chosen[name]
        if instrument.when == "work":
            self._why.pop(name, "")
            with self._failure_kept(name):
                self._kept[name] = instrument.record(self._scene)
        why = self._why.get(name, "")
        return ({} if why else self._kept.pop(name, {})), why

    def _of(self, when: When) -> Iterator[tuple[str, Instrument]]:
        return ((name, each) for name, each in self._chosen.items() if each.when == when)

    @contextmanager
    def _failure_kept(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 (anything that an instrument raises is reported)
            self._why[name] = _said(error)


def _said(error: Exception) -> str:
    if isinstance(error, Unusable):
        return str(error)[:_LONGEST]
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"[:_LONGEST]
