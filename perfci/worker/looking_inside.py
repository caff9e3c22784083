"""Records what instruments see in one case.

Like a worker that measures, a worker that records sets up, makes a first call and warms up. Its
times are no measurements: a call's time only sizes the recordings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from perfci.clock import monotonic_ns
from perfci.collector import Work
from perfci.instruments import Instrument, Recorded, RecordingScene, When, instruments
from perfci.metrics.graphs import frames_traced
from perfci.model.worker import WorkOrder
from perfci.worker.bursts import Bursts, Garbage, StrayCopies, warm_up
from perfci.worker.devices import kinds
from perfci.worker.loading import imported, seed_random, set_up
from perfci.worker.measurement import call_once, longest_warmup_s, reason_of

if TYPE_CHECKING:
    from perfci.worker.protocol import Channel


def look_inside(order: WorkOrder, channel: Channel) -> None:
    """Run the order's case, and record what the order's instruments see."""
    scene = RecordingScene(order)
    recordings = _Recordings(scene, {name: instruments()[name] for name in order.instruments})
    garbage = Garbage()
    channel.enter("import")
    device_kinds = kinds(order.devices)
    with ExitStack() as starting:
        starting.enter_context(recordings.during("start"))
        benchmarks = imported(order)
        seed_random(order.seed)
        channel.enter("setup")
        traced = frames_traced()

        def record_work(work: Work) -> Sequence[float]:
            copies = StrayCopies()
            scene.call, scene.set_up = work.prepared_call, True
            channel.enter("first_call")
            if work.prepare:
                work.prepare()
            with recordings.during("first_call"):
                called_ns = monotonic_ns()
                device = call_once(work, device_kinds)[1]
                first_s = (monotonic_ns() - called_ns) / 1e9
            starting.close()
            copies.require_none()
            scene.device, scene.compiled = device, work.compiled or frames_traced() > traced
            bursts = Bursts(work.call, device, copies, garbage, prepare=work.prepare)
            scene.once = bursts.once
            channel.enter("warmup")
            recordings.take_early()
            scene.call_s = warm_up(bursts.warm, first_s, longest_warmup_s(order, work))
            scene.call_s += bursts.preparing_s
            garbage.stop()
            garbage.freeze()
            channel.enter("record")
            channel.send("ready", call_s=scene.call_s)
            for request in channel.orders():
                garbage.collect()
                recorded, why = recordings.taken(request["instrument"])
                copies.require_none()
                channel.send("record", recorded=recorded, why=why)
            return ()

        set_up(order, benchmarks, record_work)


class _Recordings:
    """The recordings of a worker. An instrument's failure affects neither the case nor others."""

    def __init__(self, scene: RecordingScene, chosen: Mapping[str, Instrument]) -> None:
        self._scene = scene
        self._chosen = chosen
        self._kept: dict[str, Recorded] = {}
        self._failures: dict[str, str] = {}

    @contextmanager
    def during(self, when: When) -> Iterator[None]:
        """Record until the block ends. Instruments end in the reverse order of their begin."""
        begun: list[tuple[str, Any]] = []
        for name, instrument in self._of(when):
            with self._failure_kept(name):
                context = instrument.record(self._scene)  # early, and with the work, a result
                self._kept[name] = context.__enter__()
                begun.append((name, context))
        yield  # a case that fails ends the process, with the instruments still recording
        for name, context in reversed(begun):
            with self._failure_kept(name):
                context.__exit__(None, None, None)

    def take_early(self) -> None:
        """Make the recordings that are due before the work is warm."""
        for name, instrument in self._of("early"):
            with self._failure_kept(name):
                self._kept[name] = instrument.record(self._scene)

    def taken(self, name: str) -> tuple[Recorded, str]:
        """Return an instrument's recording, and the reason if the instrument failed.

        Instruments for warm work record now. The others have recorded before.
        """
        instrument = self._chosen[name]
        if instrument.when == "work":
            self._failures.pop(name, "")
            with self._failure_kept(name):
                self._kept[name] = instrument.record(self._scene)
        why = self._failures.get(name, "")
        return ({} if why else self._kept.pop(name, {})), why

    def _of(self, when: When) -> Iterator[tuple[str, Instrument]]:
        return (item for item in self._chosen.items() if item[1].when == when)

    @contextmanager
    def _failure_kept(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 (anything that an instrument raises is reported)
            self._failures[name] = reason_of(error)
