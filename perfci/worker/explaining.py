"""Looking inside one case: set-up, first call and warm-up as ever, then recordings as ordered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from perfci.api.work import Work
from perfci.clock import monotonic_ns
from perfci.errors import Unusable
from perfci.instruments import Instrument, Recorded, Scene, in_worker
from perfci.metrics.graphs.counters import frames_traced
from perfci.model.worker import WorkOrder
from perfci.worker.building import imported, set_up
from perfci.worker.bursts import Bursts, warm_up
from perfci.worker.copies import Copies
from perfci.worker.devices import Device, Kind, kinds, named, used
from perfci.worker.garbage import collect, stop_collecting
from perfci.worker.measurement import fix_threads_and_seed

if TYPE_CHECKING:
    from perfci.worker.main import Stage
    from perfci.worker.protocol import Channel

_LONGEST = 500


def look_inside(order: WorkOrder, channel: Channel, stage: Stage) -> None:
    """Run the order's case, nothing of it timed, and record what its instruments see."""
    scene = Scene(order)
    chosen = {name: in_worker(name) for name in order.instruments}
    all_of_them = tuple(chosen.values())
    recordings = _Recordings(scene)
    stage.enter("import")
    found = kinds(order.devices)
    with ExitStack() as starting:
        starting.enter_context(recordings.of(one for one in all_of_them if one.when == "start"))
        benchmarks = imported(order)
        fix_threads_and_seed(order)
        stage.enter("setup")
        traced = frames_traced()

        def go_on(work: Work) -> None:
            fix_threads_and_seed(order, seed=False)
            copies = Copies()
            scene.call, scene.set_up = work.call, True
            stage.enter("first_call")
            device = named(found, work.device) if work.device else None
            with recordings.of(one for one in all_of_them if one.when == "first_call"):
                device, first_s = _first_call(work, device, found)
            starting.close()
            copies.require_none()
            scene.device, scene.compiled = device, work.compiled or frames_traced() > traced
            bursts = Bursts(work.call, device, copies)
            scene.once = bursts.once
            stage.enter("warmup")
            recordings.early(one for one in all_of_them if one.when == "early")
            scene.call_s = warm_up(bursts.warm, first_s, order.warmup_s)
            stop_collecting()
            stage.enter("record")
            channel.send("ready", call_s=scene.call_s)
            _record_as_ordered(channel, recordings, chosen, copies)

        set_up(order, benchmarks)(go_on)


def _first_call(
    work: Work, device: Device | None, found: Sequence[Kind]
) -> tuple[Device | None, float]:
    """Make the first call, to its end; return the device that it ran on, and its time in s."""
    called_ns = monotonic_ns()
    output = work.call()
    device = device or used(found, output)
    if device:
        device.synchronize()
    return device, (monotonic_ns() - called_ns) / 1e9


def _record_as_ordered(
    channel: Channel, recordings: _Recordings, chosen: Mapping[str, Instrument], copies: Copies
) -> None:
    while line := channel.receive():
        asked = json.loads(line)
        if asked["do"] == "finish":
            return
        collect()
        recorded, why = recordings.taken(chosen[asked["instrument"]])
        copies.require_none()
        channel.send("record", recorded=recorded, why=why)
    os._exit(0)  # the parent is gone


class _Recordings:
    """What was recorded; an instrument that fails leaves the case and the others alone."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._kept: dict[str, dict[str, Any]] = {}
        self._why: dict[str, str] = {}

    @contextmanager
    def of(self, chosen: Iterable[Instrument]) -> Iterator[None]:
        """Record until the block ends; the last one that begins is the first that ends."""
        begun = []
        for one in chosen:
            try:
                context = one.record(self._scene)
                self._kept[one.name] = context.__enter__()
                begun.append((one, context))
            except Exception as error:  # noqa: BLE001 (anything an instrument raises is said)
                self._why[one.name] = _said(error)
        yield
        for one, context in reversed(begun):
            try:
                context.__exit__(None, None, None)
            except Exception as error:  # noqa: BLE001 (as above)
                self._why[one.name] = _said(error)

    def early(self, chosen: Iterable[Instrument]) -> None:
        """Record what has to be seen before the work is warm."""
        for one in chosen:
            try:
                self._kept[one.name] = one.record(self._scene)
            except Exception as error:  # noqa: BLE001 (as above)
                self._why[one.name] = _said(error)

    def taken(self, one: Instrument) -> tuple[Recorded, str]:
        """Return a recording, made now or before, or why there is none."""
        if one.when != "work":
            why = self._why.get(one.name, "")
            return ({} if why else self._kept.pop(one.name, {})), why
        try:
            return one.record(self._scene), ""
        except Exception as error:  # noqa: BLE001 (as above)
            return {}, _said(error)


def _said(error: Exception) -> str:
    if isinstance(error, Unusable):
        return str(error)[:_LONGEST]
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"[:_LONGEST]
