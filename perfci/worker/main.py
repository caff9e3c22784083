"""The worker's life: one order, carried out or failed, and the shortest way out."""

from __future__ import annotations

import os
import time
from typing import NoReturn

from perfci.worker.failing import flush, kind_of, log, where_it_failed
from perfci.worker.loading import prepare_path
from perfci.worker.protocol import Channel, decode_order


class Stage:
    """Where the worker is, told to the parent: a crash is then reported with its stage."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.name = "start"

    def enter(self, name: str) -> None:
        """Tell the parent that ``name`` begins."""
        self.name = name
        self._channel.send("stage", stage=name)


def main(orders: int, results: int, spawned_ns: int, started_ns: int) -> NoReturn:
    """Serve one order and leave by ``os._exit``: an interpreter's exit with torch costs 0.4 s."""
    channel = Channel(orders, results)
    line = channel.receive()
    if not line:
        os._exit(0)
    order = decode_order(line)
    stage = Stage(channel)
    code = 0
    try:
        prepare_path(order.python_path)
        if order.case:
            from perfci.worker.measuring import measure

            measure(order, channel, stage, spawned_ns, started_ns, time.monotonic_ns())
        else:
            from perfci.worker.discovery import discover

            stage.enter("import")
            channel.send("discovery", discovery=discover(order))
    except BaseException as error:  # noqa: BLE001 (user code may raise anything: told, not hidden)
        log(error)  # first: the parent cuts the log when it is told
        channel.send(
            "failed",
            stage=stage.name,
            kind=kind_of(error),
            message=where_it_failed(error, (order.root, order.benchmark_root)),
        )
        code = 1
    flush()
    os._exit(code)
