"""The worker's life: one order, carried out or failed, and the shortest way out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

from perfci.errors import Unusable
from perfci.metrics import use
from perfci.model.ran import WRONG_CODE
from perfci.model.worker import WorkOrder
from perfci.worker.failure import flush, kind_of, log, where_it_failed
from perfci.worker.hook.perfci_watch import Watch, begin_in_worker
from perfci.worker.loading import prepare_path
from perfci.worker.protocol import Channel, Ends, decode_order


@dataclass(frozen=True, slots=True)
class Start:
    """Readings of the monotonic clock, in ns, from the spawn to the end of the imports.

    ``resumed_ns`` is when the worker went on: at once, or when its starter forked it. What lies
    between is the starter's waiting, and is no part of any start.
    """

    spawned_ns: int
    started_ns: int
    harness_ns: int
    imported_ns: int
    resumed_ns: int

    def forked(self, forked_ns: int) -> Start:
        """Return the start of a worker that was forked at ``forked_ns``."""
        return replace(self, resumed_ns=forked_ns)

    def until(self, now_ns: int) -> float:
        """Return the time in s from the spawn to ``now_ns``, waiting left out."""
        return (now_ns - self.spawned_ns - (self.resumed_ns - self.imported_ns)) / 1e9

    def imports(self) -> float:
        """Return how long the imports took, in s."""
        return (self.imported_ns - self.harness_ns) / 1e9

    def phases(self, later_harness_ns: int) -> dict[str, float]:
        """Return the phases up to the imports, in s; the harness's own work goes on after them."""
        return {
            "interpreter": (self.started_ns - self.spawned_ns) / 1e9,
            "harness": (self.harness_ns - self.started_ns + later_harness_ns) / 1e9,
            "imports": self.imports(),
        }


class Stage:
    """Where the worker is. The parent knows, and reports a crash with its stage."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.name = "start"

    def enter(self, name: str) -> None:
        """Report to the parent that ``name`` begins."""
        self.name = name
        self._channel.send("stage", stage=name)


def main(ends: Ends, spawned_ns: int, started_ns: int) -> NoReturn:
    """Serve the order of a fresh process: discovery, one case, or a starter's forks."""

    def serve(order: WorkOrder, channel: Channel, stage: Stage) -> None:
        prepare_path(order.python_path)
        watch = begin_in_worker(os.environ)
        look = partial(_look, watch)
        discovers = not (order.case or order.fork_socket >= 0)
        if not discovers:
            use(order.metrics)
        harness_ns = time.monotonic_ns()
        stage.enter("import")
        if discovers:
            from perfci.worker.discovery import discover

            discovery = discover(order)
            look()
            channel.send("discovery", discovery=discovery)
            return
        from perfci.worker.building import imported

        benchmarks = imported(order)
        imported_ns = time.monotonic_ns()
        start = Start(spawned_ns, started_ns, harness_ns, imported_ns, resumed_ns=imported_ns)
        if order.case:
            from perfci.worker.measurement import measure

            measure(order, channel, stage, start, benchmarks, look)
            return
        from perfci.worker.starter import serve_forks

        def become_worker(ends: Ends, forked_ns: int) -> None:
            def serve_case(order: WorkOrder, channel: Channel, stage: Stage) -> None:
                from perfci.worker.measurement import measure

                if watch:
                    watch.go_on(os.environ)
                measure(order, channel, stage, start.forked(forked_ns), benchmarks, look)

            _live(ends, serve_case)

        serve_forks(order, channel, become_worker)

    _live(ends, serve)


def _look(watch: Watch | None) -> None:
    """Look at all that is loaded, where this worker is watched, and see that it is written down."""
    if watch is None:
        return
    watch.look()
    if why := watch.unwritten():
        raise Unusable(
            WRONG_CODE,
            f"what this worker ran isn't known: it could not be written down ({why})\n"
            "Leave the session's files (below TMPDIR's parent) as they are, with room to grow.",
        )


def _live(ends: Ends, serve: Callable[[WorkOrder, Channel, Stage], None]) -> NoReturn:
    """Serve one order and leave by ``os._exit``: an interpreter's exit with torch costs 0.4 s."""
    channel = Channel(ends)
    line = channel.receive()
    if not line:
        os._exit(0)
    order = decode_order(line)
    stage = Stage(channel)
    code = 0
    try:
        serve(order, channel, stage)
    except BaseException as error:  # noqa: BLE001 (user code may raise anything: reported, not hidden)
        log(error)  # first: the parent cuts the log when it gets the message
        channel.send(
            "failed",
            stage=stage.name,
            kind=kind_of(error),
            message=where_it_failed(error, (order.root, order.benchmark_root)),
        )
        code = 1
    flush()
    os._exit(code)
